// Makes the choices of a model server's chat completion conform to OpenAI's API. Missing members are filled in, and
// repeated ones are dropped.
import type { EngineWords } from "../conversation/format.ts";
import { reportedFault } from "../engine-fault.ts";
import { textOf } from "./json-value.ts";
import { thinkingText } from "./reasoning.ts";

type Json = Record<string, unknown>;

interface Call {
  readonly index: number;
  /** The id that the server sent. If an earlier call had the same id, the client gets a generated id instead. */
  readonly reportedId: string | undefined;
  readonly name: string | undefined;
  hasArguments: boolean;
}

/** Finish reasons of OpenRouter, vLLM and DeepSeek that mean a failure of the server. */
const failures: ReadonlySet<unknown> = new Set(["error", "abort", "insufficient_system_resource"]);
/** For finish reasons of Anthropic, Gemini and TGI, those of OpenAI. */
const ends: Readonly<Record<string, string>> = {
  ...{ end_turn: "stop", eos_token: "stop", stop_sequence: "stop", max_tokens: "length", tool_use: "tool_calls" },
};
/** Finish reasons after which a call may lack its arguments. */
const cutEnds: ReadonlySet<unknown> = new Set(["length", "content_filter"]);

/**
 * The kind of change to a chunk. `once` means that the change depends on earlier chunks, so that a similar chunk may be
 * changed differently.
 */
export type Mended = "not" | "alike" | "once";

/** Throws if a choice reports that the server has failed. The choice contains the error message. */
export function requireNoFailure(choice: unknown, engine: EngineWords | undefined): void {
  if (!isRecord(choice) || !failures.has(choice["finish_reason"])) return;
  const said = JSON.stringify({ error: choice["error"] });
  throw reportedFault(said, engine, failedMidway, `it ended by "${choice["finish_reason"]}"`);
}

export const failedMidway = "The model server failed in the middle of the answer.";

/**
 * Creates ids for calls that have no unique id. A call at the same position in the same answer always gets the same id.
 */
class CallIds {
  readonly #answerId: string;
  readonly #given = new Set<string>();
  #count = 0;

  constructor(answerId: string) {
    this.#answerId = answerId.slice(answerId.indexOf("-") + 1);
  }

  /** Reports whether no earlier call of the answer has this id. */
  isNew(id: unknown): boolean {
    if (typeof id !== "string" || id === "" || this.#given.has(id)) return false;
    this.#given.add(id);
    return true;
  }

  next(): string {
    return `call_${this.#answerId}_${this.#count++}`;
  }
}

/** Corrects the choices of one streamed answer. */
export class StrictChoices {
  readonly #answerId: string;
  #ids: CallIds | undefined;
  #calls: Map<unknown, StrictCalls> | undefined;

  /** `answerId` must be unique, because it is a part of the generated ids of calls. */
  constructor(answerId: string) {
    this.#answerId = answerId;
  }

  /** Corrects the choices of a chunk in place. */
  chunk(choices: readonly unknown[]): Mended {
    let mended: Mended = "not";
    for (let position = 0; position < choices.length; position++) {
      const choice = choices[position] as Json | null;
      if (choice && typeof choice["index"] === "string") {
        choice["index"] = Number(choice["index"]);
        mended = more(mended, "alike");
      }
      if (choice && isRecord(choice["message"]) && !isRecord(choice["delta"])) {
        // Some servers send a whole answer as the only chunk of their stream.
        choice["delta"] = choice["message"];
        delete choice["message"];
        mended = more(mended, "once");
      }
      if (choice && needsRepair(choice)) mended = more(mended, this.#mend(choice, choice["index"] ?? position));
    }
    return mended;
  }

  /** Reports whether a choice that ends with this finish reason has calls without arguments. */
  lacksArguments(index: unknown, end: unknown): boolean {
    return !cutEnds.has(end) && this.#calls?.get(index)?.lacksArguments === true;
  }

  /**
   * Returns a delta with empty arguments for each call of the choice that has none. It must be sent at the end of the
   * choice. Returns undefined if there are no such calls.
   */
  undeclaredArguments(index: unknown): Json | undefined {
    return this.#calls?.get(index)?.undeclared();
  }

  #mend(choice: Json, index: unknown): Mended {
    let mended: Mended = mendEnd(choice) ? "alike" : "not";
    const { delta } = choice;
    if (isRecord(delta)) {
      if (mendContent(delta)) mended = more(mended, "alike");
      const pieces = delta["tool_calls"];
      if (Array.isArray(pieces) && pieces.length > 0) mended = more(mended, this.#callsOf(index).add(pieces));
    }
    return mended;
  }

  #callsOf(index: unknown): StrictCalls {
    this.#calls ??= new Map();
    this.#ids ??= new CallIds(this.#answerId);
    let calls = this.#calls.get(index);
    if (!calls) {
      calls = new StrictCalls(this.#ids);
      this.#calls.set(index, calls);
    }
    return calls;
  }
}

/** Corrects the choices of a whole answer in place. Returns whether anything changed. */
export function mendWhole(choices: readonly unknown[], answerId: string): boolean {
  const ids = new CallIds(answerId);
  let isMended = false;
  for (const choice of choices as (Json | null)[]) {
    const message = choice?.["message"];
    if (!choice || !isRecord(message)) continue;
    if (mendContent(message)) isMended = true;
    const calls = message["tool_calls"];
    const hasCalls = Array.isArray(calls) && calls.length > 0;
    if (hasCalls && mendWholeCalls(calls, ids)) isMended = true;
    if (mendEnd(choice)) isMended = true;
    if (choice["finish_reason"] !== undefined && choice["finish_reason"] !== null) continue;
    choice["finish_reason"] = hasCalls ? "tool_calls" : "stop";
    isMended = true;
  }
  return isMended;
}

function needsRepair({ delta, finish_reason: end }: Json): boolean {
  if (end !== undefined && end !== null) return true;
  return isRecord(delta) && (Array.isArray(delta["tool_calls"]) || Array.isArray(delta["content"]));
}

/** Replaces a finish reason by OpenAI's word for it. An empty finish reason becomes null. */
function mendEnd(choice: Json): boolean {
  const end = choice["finish_reason"];
  if (typeof end !== "string") return false;
  const word = end.toLowerCase();
  const reason = end === "" ? null : (ends[word] ?? (isOpenAIs(word) ? word : end));
  choice["finish_reason"] = reason;
  return reason !== end;
}

function isOpenAIs(word: string): boolean {
  return word === "stop" || word === "length" || word === "tool_calls" || word === "content_filter";
}

/** Converts content to text. Mistral sends text and reasoning as a list of parts. */
function mendContent(message: Json): boolean {
  const { content } = message;
  if (!Array.isArray(content)) return false;
  const parts = content.filter(isRecord);
  const thought = parts.map(({ type, thinking }) => (type === "thinking" ? thinkingText(thinking) : "")).join("");
  message["content"] = parts.map(({ type, text }) => (type === "text" ? (textOf(text) ?? "") : "")).join("");
  if (thought !== "") message["reasoning_content"] = `${textOf(message["reasoning_content"]) ?? ""}${thought}`;
  return true;
}

function mendWholeCalls(calls: readonly unknown[], ids: CallIds): boolean {
  let isMended = false;
  for (const call of calls) {
    if (!isRecord(call)) continue;
    if (mendHead(call, ids)) isMended = true;
    const called = call["function"];
    if (isRecord(called) && mendArguments(called, "{}")) isMended = true;
  }
  return isMended;
}

function mendHead(call: Json, ids: CallIds): boolean {
  const hasId = ids.isNew(call["id"]);
  if (!hasId) call["id"] = ids.next();
  const hasType = textOf(call["type"]) !== undefined;
  if (!hasType) call["type"] = isRecord(call["custom"]) ? "custom" : "function";
  return !hasId || !hasType;
}

/**
 * Converts arguments to JSON text, because some servers send them as an object. `none` replaces missing or invalid
 * arguments.
 */
function mendArguments(called: Json, none: string): boolean {
  const given = called["arguments"];
  const text = isRecord(given) ? JSON.stringify(given) : (textOf(given) ?? none);
  called["arguments"] = text;
  return text !== given;
}

/**
 * The calls of one choice. Servers differ in how they mark which call a piece belongs to. `ReplyCalls` applies the same
 * rules for clients of other formats.
 */
class StrictCalls {
  readonly #ids: CallIds;
  readonly #calls: Call[] = [];
  /** The last call with each index. `#byId` has the last call with each id. */
  readonly #byIndex = new Map<unknown, Call>();
  readonly #byId = new Map<string, Call>();

  constructor(ids: CallIds) {
    this.#ids = ids;
  }

  add(pieces: readonly unknown[]): Mended {
    let mended: Mended = "not";
    for (const piece of pieces) if (isRecord(piece)) mended = more(mended, this.#add(piece));
    return mended;
  }

  get lacksArguments(): boolean {
    return this.#calls.some(({ hasArguments }) => !hasArguments);
  }

  undeclared(): Json | undefined {
    const empty = this.#calls.filter(({ hasArguments }) => !hasArguments);
    for (const call of empty) call.hasArguments = true;
    if (empty.length === 0) return undefined;
    return { tool_calls: empty.map(({ index }) => ({ index, function: { arguments: "{}" } })) };
  }

  #add(piece: Json): Mended {
    const called = isRecord(piece["function"]) ? piece["function"] : piece["custom"];
    const name = isRecord(called) ? textOf(called["name"]) : undefined;
    const known = this.#known(piece["index"], textOf(piece["id"]), name);
    const call = known ?? this.#begin(piece, name);
    let isMended = piece["index"] !== call.index;
    piece["index"] = call.index;
    if (known && textOf(piece["id"]) !== undefined) {
      // The id is only sent once, because some clients concatenate the pieces of an id as they do with text.
      delete piece["id"];
      isMended = true;
    }
    if (isRecord(called)) {
      if (known && name !== undefined && name === call.name) {
        delete called["name"];
        isMended = true;
      }
      if ("arguments" in called && typeof called["arguments"] !== "string") isMended = mendArguments(called, "");
      call.hasArguments ||= called === piece["custom"] || textOf(called["arguments"]) !== undefined;
    }
    return known ? (isMended ? "alike" : "not") : "once";
  }

  #begin(piece: Json, name: string | undefined): Call {
    const { index: reportedIndex } = piece;
    const reportedId = textOf(piece["id"]);
    mendHead(piece, this.#ids);
    const call = { index: this.#calls.length, reportedId, name, hasArguments: false };
    this.#calls.push(call);
    if (reportedIndex !== undefined && reportedIndex !== null) this.#byIndex.set(reportedIndex, call);
    if (reportedId !== undefined) this.#byId.set(reportedId, call);
    return call;
  }

  #known(index: unknown, id: string | undefined, name: string | undefined): Call | undefined {
    const isCounted = index !== undefined && index !== null;
    if (!isCounted) return id !== undefined ? this.#byId.get(id) : name !== undefined ? undefined : this.#calls.at(-1);
    const known = this.#byIndex.get(index);
    return known && id !== undefined && known.reportedId !== id && name !== undefined ? undefined : known;
  }
}

function more(one: Mended, other: Mended): Mended {
  if (one === "once" || other === "once") return "once";
  return one === "alike" ? one : other;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
