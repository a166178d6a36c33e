// Adds members that a server of the Messages API leaves out of content blocks.
import { inputObject, isObject, type Json, textOf } from "./json.ts";

/** Gives each call of an answer an id that no other call has. A result refers to its call by this id. */
export class CallIds {
  readonly #given = new Set<string>();

  /** Returns the server's id. If that id is empty or belongs to another call, returns a new id. */
  take(reportedId: unknown): string {
    const isFree = typeof reportedId === "string" && reportedId !== "" && !this.#given.has(reportedId);
    const id = isFree ? reportedId : `toolu_${crypto.randomUUID().replaceAll("-", "")}`;
    this.#given.add(id);
    return id;
  }
}

/** Returns the block with all members that clients need. If none is missing, returns the same object. */
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
 * Returns the content of a whole message as blocks. Some servers send only a text, which becomes a block. Returns
 * undefined for other values.
 */
export function blocksOf(content: unknown): readonly unknown[] | undefined {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : undefined;
}

/** Returns a piece of a call's input as JSON. Some servers send the object itself instead of its JSON. */
export function inputPiece(piece: unknown): string | undefined {
  return isObject(piece) ? JSON.stringify(piece) : textOf(piece);
}

function inputOf(input: unknown): Json {
  return isObject(input) ? input : inputObject(textOf(input) ?? "");
}
