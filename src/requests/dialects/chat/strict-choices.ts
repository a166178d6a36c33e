// Makes the choices of a server's own chat completion strict: what clients of OpenAI's format need is filled in, repeats go.
import type { EngineWords } from "../conversation/format.ts";
import { toldFault } from "../engine-fault.ts";
import { textOf } from "./json-value.ts";
import { thinkingText } from "./reasoning.ts";

type Json = Record<string, unknown>;

interface Call {
  readonly index: number;
  /** The id that its server told: the client got one of ours where another call had it before. */
  readonly toldId: string | undefined;
  readonly name: string | undefined;
  hasArguments: boolean;
}

/** Ends of a server that gave up: OpenRouter, vLLM, DeepSeek. */
const failures: ReadonlySet<unknown> = new Set(["error", "abort", "insufficient_system_resource"]);
/** Ends in other servers' words: Anthropic's, Gemini's and TGI's. */
const ends: Readonly<Record<string, string>> = {
  ...{ end_turn: "stop", eos_token: "stop", stop_sequence: "stop", max_tokens: "length", tool_use: "tool_calls" },
};
/** Ends behind which the arguments of a call may be missing. */
const cutEnds: ReadonlySet<unknown> = new Set(["length", "content_filter"]);

/**
 * What was done to a chunk: nothing, or something. `once`: it depends on the chunks before it, so that what becomes of it says
 * nothing of others like it.
 */
export type Mended = "not" | "alike" | "once";

/** Throws the fault of a choice that its server gave up, in the words that the choice has for it. */
export function requireNoFailure(choice: unknown, engine: EngineWords | undefined): void {
  if (!isRecord(choice) || !failures.has(choice["finish_reason"])) return;
  const said = JSON.stringify({ error: choice["error"] });
  throw toldFault(said, engine, failedMidway, `it ended by "${choice["finish_reason"]}"`);
}

export const failedMidway = "The model server failed in the middle of the answer.";

/** Gives ids to calls that have none of their own: the same for the same place in the same answer. */
class CallIds {
  readonly #answerId: string;
  readonly #given = new Set<string>();
  #count = 0;

  constructor(answerId: string) {
    this.#answerId = answerId.slice(answerId.indexOf("-") + 1);
  }

  /** Reports whether no call of the answer has this id. */
  isNew(id: unknown): boolean {
    if (typeof id !== "string" || id === "" || this.#given.has(id)) return false;
    this.#given.add(id);
    return true;
  }

  next(): string {
    return `call_${this.#answerId}_${this.#count++}`;
  }
}

/** The choices of one streamed answer. */
export class StrictChoices {
  readonly #answerId: string;
  #ids: CallIds | undefined;
  #calls: Map<unknown, StrictCalls> | undefined;

  /** `answerId`: unique, as ids of calls are made of it. */
  constructor(answerId: string) {
    this.#answerId = answerId;
  }

  /** Changes the choices of a chunk in place. */
  chunk(choices: readonly unknown[]): Mended {
    let mended: Mended = "not";
    for (let position = 0; position < choices.length; position++) {
      const choice = choices[position] as Json | null;
      if (choice && typeof choice["index"] === "string") {
        choice["index"] = Number(choice["index"]);
        mended = more(mended, "alike");
      }
      if (choice && isRecord(choice["message"]) && !isRecord(choice["delta"])) {
        // A stream may be one chunk that is a whole answer.
        choice["delta"] = choice["message"];
        delete choice["message"];
        mended = more(mended, "once");
      }
      if (choice && needsLook(choice)) mended = more(mended, this.#mend(choice, choice["index"] ?? position));
    }
    return mended;
  }

  /** Returns whether a choice that ended by this has calls that should have got arguments, and did not. */
  lacksArguments(index: unknown, end: unknown): boolean {
    return !cutEnds.has(end) && this.#calls?.get(index)?.lacksArguments === true;
  }

  /** The calls of a choice that got no arguments, with empty ones, for its last delta; undefined: there are none. */
  unsaidArguments(index: unknown): Json | undefined {
    return this.#calls?.get(index)?.unsaid();
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

/** Changes the choices of a whole answer in place; reports whether it did. */
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

function needsLook({ delta, finish_reason: end }: Json): boolean {
  if (end !== undefined && end !== null) return true;
  return isRecord(delta) && (Array.isArray(delta["tool_calls"]) || Array.isArray(delta["content"]));
}

/** OpenAI's word for why a choice ended; an empty one is none. */
function mendEnd(choice: Json): boolean {
  const end = choice["finish_reason"];
  if (typeof end !== "string") return false;
  const word = end.toLowerCase();
  const told = end === "" ? null : (ends[word] ?? (isOpenAIs(word) ? word : end));
  choice["finish_reason"] = told;
  return told !== end;
}

function isOpenAIs(word: string): boolean {
  return word === "stop" || word === "length" || word === "tool_calls" || word === "content_filter";
}

/** Mistral tells texts and thoughts as parts. */
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

/** Some servers send the arguments as an object. `none`: in place of what is no text, or of none. */
function mendArguments(called: Json, none: string): boolean {
  const told = called["arguments"];
  const text = isRecord(told) ? JSON.stringify(told) : (textOf(told) ?? none);
  called["arguments"] = text;
  return text !== told;
}

/**
 * The calls of one choice, in all the ways in which servers tell which piece belongs to which; see `ReplyCalls`, which has the
 * same rules for clients of other formats.
 */
class StrictCalls {
  readonly #ids: CallIds;
  readonly #calls: Call[] = [];
  /** The last call of each index, and of each id. */
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

  unsaid(): Json | undefined {
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
      // Clients put the pieces of a text together, and some those of an id.
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
    const { index: told } = piece;
    const toldId = textOf(piece["id"]);
    mendHead(piece, this.#ids);
    const call = { index: this.#calls.length, toldId, name, hasArguments: false };
    this.#calls.push(call);
    if (told !== undefined && told !== null) this.#byIndex.set(told, call);
    if (toldId !== undefined) this.#byId.set(toldId, call);
    return call;
  }

  #known(index: unknown, id: string | undefined, name: string | undefined): Call | undefined {
    const isCounted = index !== undefined && index !== null;
    if (!isCounted) return id !== undefined ? this.#byId.get(id) : name !== undefined ? undefined : this.#calls.at(-1);
    const known = this.#byIndex.get(index);
    return known && id !== undefined && known.toldId !== id && name !== undefined ? undefined : known;
  }
}

function more(one: Mended, other: Mended): Mended {
  if (one === "once" || other === "once") return "once";
  return one === "alike" ? one : other;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
