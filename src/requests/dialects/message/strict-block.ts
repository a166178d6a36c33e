// Fills in members that a server which speaks Messages leaves out of content blocks.
import { inputObject, isObject, type Json, textOf } from "./json.ts";

/** Gives each call of an answer an id that no other call has, because results name the id. */
export class CallIds {
  readonly #given = new Set<string>();

  /** Returns the server's id, or a new id if the server's is empty or belongs to another call. */
  take(reportedId: unknown): string {
    const isFree = typeof reportedId === "string" && reportedId !== "" && !this.#given.has(reportedId);
    const id = isFree ? reportedId : `toolu_${crypto.randomUUID().replaceAll("-", "")}`;
    this.#given.add(id);
    return id;
  }
}

/** Returns the block with the members that clients need: the same object if none is missing. */
export function strictBlock(block: Json, ids: CallIds): Json {
  const { type } = block;
  if (type === "tool_use") {
    const id = ids.take(block["id"]);
    const input = inputOf(block["input"]);
    return id === block["id"] && input === block["input"] ? block : { ...block, id, input };
  }
  if (type !== "text" && type !== "thinking") return block;
  return textOf(block[type]) === undefined ? { ...block, [type]: "" } : block;
}

/**
 * Returns the content of a whole message as blocks, because some servers send only a text. Returns undefined for other
 * values.
 */
export function blocksOf(content: unknown): readonly unknown[] | undefined {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : undefined;
}

/** Returns a piece of a call's input as JSON, because some servers send the object itself. */
export function inputPiece(piece: unknown): string | undefined {
  return isObject(piece) ? JSON.stringify(piece) : textOf(piece);
}

function inputOf(input: unknown): Json {
  return isObject(input) ? input : inputObject(textOf(input) ?? "");
}
