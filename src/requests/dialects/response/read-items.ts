// Reads the items of a Responses request into the turns of a conversation.
import { fieldError } from "../../../base/errors.ts";
import type { Seal } from "../../../domain/seal.ts";
import { cacheOf } from "../conversation/cache-marks.ts";
import type { AnswerPart, ConversationMessage, ResultTurn, UserTurn } from "../conversation/conversation.ts";
import { compactionTurn, isToCompact } from "./compaction.ts";
import { callAndOutput } from "./hosted/hosted-items.ts";
import { isObject, type Json, objectsOf, textOf } from "./json.ts";
import { partTypes, readParts } from "./read-parts.ts";
import { openReasoning } from "./sealed-reasoning.ts";

/**
 * Types of calls of the vendor's own tools that the client runs. Each call becomes a call of the function with this
 * name.
 */
const ownCalls: ReadonlyMap<unknown, { name: string; input: string }> = new Map([
  ["local_shell_call", { name: "local_shell", input: "action" }],
  ["shell_call", { name: "shell", input: "action" }],
  ["apply_patch_call", { name: "apply_patch", input: "operation" }],
  ["tool_search_call", { name: "tool_search", input: "arguments" }],
]);
const outputs: ReadonlySet<unknown> = new Set([
  ...["function_call_output", "custom_tool_call_output", "tool_search_output"],
  ...["local_shell_call_output", "shell_call_output", "apply_patch_call_output"],
]);

export interface ReadItems {
  turns: ConversationMessage[];
  /** Tools that were found among the items. */
  tools: readonly { tools: unknown; place: string }[];
  /** Places of items that other models cannot read, such as results of hosted tools. */
  leftOut: string[];
}

export function readItems(input: unknown, seal: Seal): ReadItems {
  if (typeof input === "string") {
    return {
      turns: [{ role: "user", parts: [{ type: "text", text: input }], place: "input" }],
      tools: [],
      leftOut: [],
    };
  }
  const reader = new ItemReader(seal);
  if (Array.isArray(input)) {
    const items = isToCompact({ input }) ? input.slice(0, -1) : input;
    for (const [index, item] of items.entries()) if (isObject(item)) reader.add(item, `input[${index}]`);
    if (items !== input) reader.ask(compactionTurn(`input[${items.length}]`));
  }
  return reader.end();
}

class ItemReader {
  readonly #seal: Seal;
  readonly #turns: ConversationMessage[] = [];
  readonly #tools: { tools: unknown; place: string }[] = [];
  readonly #leftOut: string[] = [];
  /** The parts of the current assistant turn. They consist of all text and calls until a message with another role. */
  #said: AnswerPart[] = [];
  #saidAt = "";
  #saidId: string | undefined;

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  end(): ReadItems {
    this.#endSaid();
    return { turns: this.#turns, tools: this.#tools, leftOut: this.#leftOut };
  }

  ask(turn: UserTurn): void {
    this.#add(turn);
  }

  add(item: Json, place: string): void {
    const type = item["type"] ?? "message";
    const own = ownCalls.get(type);
    if (type === "message") this.#addMessage(item, place);
    else if (type === "function_call") this.#say(functionCall(item), place);
    else if (type === "custom_tool_call") this.#say(customCall(item), place);
    else if (own) this.#say(ownCall(item, own), place);
    else if (outputs.has(type)) this.#add(resultOf(item, place));
    else if (type === "reasoning") this.#addReasoning(item, place);
    else if (type === "compaction") this.#addCompaction(item, place);
    else if (type === "mcp_call") for (const one of callAndOutput(item)) this.add(one, place);
    else if (type === "additional_tools") this.#tools.push({ tools: item["tools"], place: `${place}.tools` });
    else this.#leftOut.push(place);
  }

  #addMessage(item: Json, place: string): void {
    const { role, content } = item;
    const at = `${place}.content`;
    if (role === "assistant") {
      for (const part of saidParts(content, at)) this.#say(part, place);
      this.#saidId ??= textOf(item["id"]);
    } else if (role === "system" || role === "developer") {
      this.#add({ role, parts: readParts(content, at), place });
    } else if (role === "user") {
      this.#add({ role, parts: readParts(content, at), place });
    } else {
      throw fieldError(`${place}.role`, `must be user, assistant, system or developer (got ${JSON.stringify(role)}).`);
    }
  }

  #addReasoning(item: Json, place: string): void {
    const texts = (list: unknown) => objectsOf(list).map((part) => textOf(part["text"]) ?? "");
    const [content, summary] = [texts(item["content"]), texts(item["summary"])];
    const isSummary = content.length === 0;
    const shown = (isSummary ? summary : content).join("\n\n");
    const sealed = textOf(item["encrypted_content"]) || undefined;
    const ours = sealed === undefined ? undefined : openReasoning(this.#seal, sealed);
    const id = textOf(item["id"]);
    // The gateway's own seal contains the whole reasoning, even if the client saw only part of it.
    if (ours && ours.text !== "") {
      this.#say({ type: "reasoning", text: ours.text, isSummary: false, proof: ours.proof, id }, place);
      return;
    }
    const theirs = sealed === undefined || ours ? undefined : ({ kind: "encrypted", data: sealed } as const);
    const proof = ours?.proof ?? theirs;
    if (shown !== "" || proof) this.#say({ type: "reasoning", text: shown, isSummary, proof, id }, place);
  }

  #addCompaction(item: Json, place: string): void {
    const summary = this.#seal.open(textOf(item["encrypted_content"]) ?? "");
    if (summary === undefined) {
      throw fieldError(
        `${place}.encrypted_content`,
        "is not a compaction of this gateway and account, so nobody here can read it. Send the items that it stands for.",
      );
    }
    this.#add({ role: "user", parts: [{ type: "text", text: summary }], place });
  }

  #say(part: AnswerPart, place: string): void {
    if (this.#said.length === 0) this.#saidAt = place;
    this.#said.push(part);
  }

  #add(turn: ConversationMessage): void {
    this.#endSaid();
    this.#turns.push(turn);
  }

  #endSaid(): void {
    if (this.#said.length === 0) return;
    this.#turns.push({ role: "assistant", parts: this.#said, id: this.#saidId, place: this.#saidAt });
    this.#said = [];
    this.#saidId = undefined;
  }
}

function saidParts(content: unknown, place: string): AnswerPart[] {
  if (!Array.isArray(content)) return readParts(content, place) as AnswerPart[];
  return content.flatMap((part: unknown, index): AnswerPart[] => {
    if (!isObject(part)) return [];
    if (part["type"] === "refusal") return [{ type: "refusal", text: textOf(part["refusal"]) ?? "" }];
    const text = textOf(part["text"]);
    if (text !== undefined) return [{ type: "text", text, cache: cacheOf(part) }];
    throw fieldError(`${place}[${index}].type`, "must be output_text or refusal in what the assistant said.");
  });
}

function functionCall(item: Json): AnswerPart {
  return {
    type: "call",
    kind: "function",
    callId: callIdOf(item),
    name: textOf(item["name"]) ?? "",
    namespace: textOf(item["namespace"]),
    input: textOf(item["arguments"]) ?? JSON.stringify(item["arguments"] ?? {}),
    id: textOf(item["id"]),
    cache: cacheOf(item),
  };
}

function customCall(item: Json): AnswerPart {
  return {
    type: "call",
    kind: "custom",
    callId: callIdOf(item),
    name: textOf(item["name"]) ?? "",
    namespace: textOf(item["namespace"]),
    input: textOf(item["input"]) ?? "",
    id: textOf(item["id"]),
    cache: cacheOf(item),
  };
}

function ownCall(item: Json, { name, input }: { name: string; input: string }): AnswerPart {
  const id = textOf(item["id"]);
  return { type: "call", kind: "function", callId: callIdOf(item), name, input: JSON.stringify(item[input] ?? {}), id };
}

function resultOf(item: Json, place: string): ResultTurn {
  const kind = item["type"] === "custom_tool_call_output" ? "custom" : "function";
  const output = item["output"] ?? item["tools"] ?? undefined;
  const isParts = Array.isArray(output) && output.every((part) => isObject(part) && partTypes.has(part["type"]));
  const isText = typeof output === "string" || isParts;
  const parts = readParts(isText ? output : (JSON.stringify(output) ?? ""), `${place}.output`);
  return { role: "tool", callId: callIdOf(item), parts, kind, cache: cacheOf(item), place };
}

/** Returns the id of the call, or the id of its item. Some servers identify a call only by its item. */
function callIdOf(item: Json): string {
  return textOf(item["call_id"]) ?? textOf(item["id"]) ?? "";
}
