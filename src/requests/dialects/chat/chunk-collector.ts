// Collects the chunks of a streamed chat completion into one whole completion.
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { AnswerCollector } from "../answer.ts";
import { usageObject } from "../openai/usage.ts";

type Json = Record<string, unknown>;

interface CollectedCall {
  id: unknown;
  type: unknown;
  /** Name and text of a call of a `function` or a `custom` tool. The text arrives in pieces. */
  name: string;
  text: string;
  rest: Map<string, unknown>;
}

interface CollectedAudio {
  /** Pieces of base64, each encoded separately. Joining their texts would give invalid base64. */
  data: string[];
  transcript: string | undefined;
  rest: Map<string, unknown>;
}

interface CollectedChoice {
  /** Texts that arrive in pieces. */
  texts: Map<string, string>;
  calls: CollectedCall[];
  callIndexes: Map<unknown, CollectedCall>;
  /** For each id, the first call that has it. */
  callIds: Map<unknown, CollectedCall>;
  functionCall: { name: string; arguments: string } | undefined;
  audio: CollectedAudio | undefined;
  logprobs: Map<string, unknown[]>;
  finishReason: unknown;
  /** All other members of the deltas, and those of the choices, each with its last value. */
  message: Map<string, unknown>;
  choice: Map<string, unknown>;
}

const pieceNames = ["content", "refusal", "reasoning_content", "reasoning"];
/** Members of a chunk that are not copied to the whole answer. `obfuscation` is padding that streams contain. */
const chunkOnly = new Set(["object", "choices", "usage", "obfuscation"]);
/** Characters that each choice or call adds to the counted size, in addition to its text. */
const entrySize = 200;

export class ChunkCollector implements AnswerCollector {
  size = 0;
  readonly #choices = new Map<unknown, CollectedChoice>();
  readonly #head = new Map<string, unknown>();
  #usage: unknown;

  add(events: string): void {
    for (const event of events.split("\n\n")) {
      if (event.startsWith("data: {")) this.#addChunk(JSON.parse(event.slice("data: ".length)));
    }
  }

  #addChunk(chunk: Json): void {
    for (const [name, value] of Object.entries(chunk)) {
      if (!chunkOnly.has(name) && isSaid(value)) this.#head.set(name, value);
    }
    if (isSaid(chunk["usage"])) this.#usage = chunk["usage"];
    const { choices } = chunk;
    for (const choice of Array.isArray(choices) ? choices : []) if (isObject(choice)) this.#addChoice(choice);
  }

  answer(usage: TokenUsage): Json | undefined {
    if (this.#choices.size === 0) return undefined;
    const choices = [...this.#choices]
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([index, choice]) => choiceToWire(index, choice));
    return {
      ...Object.fromEntries(this.#head),
      object: "chat.completion",
      choices,
      usage: this.#usage ?? usageObject(usage, { generates: true }),
    };
  }

  #addChoice({ index, delta, finish_reason, logprobs, ...others }: Json): void {
    const choice = this.#choiceAt(index);
    if (isSaid(finish_reason)) choice.finishReason = finish_reason;
    if (isObject(logprobs)) this.#addLogprobs(choice, logprobs);
    this.#addOthers(choice.choice, others);
    if (!isObject(delta)) return;
    const { tool_calls, function_call, audio, ...rest } = delta;
    for (const name of pieceNames) {
      const piece = rest[name];
      delete rest[name];
      if (typeof piece !== "string") continue;
      choice.texts.set(name, (choice.texts.get(name) ?? "") + piece);
      this.size += piece.length;
    }
    for (const call of Array.isArray(tool_calls) ? tool_calls : []) if (isObject(call)) this.#addCall(choice, call);
    if (isObject(function_call)) this.#addFunctionCall(choice, function_call);
    if (isObject(audio)) this.#addAudio(choice, audio);
    this.#addOthers(choice.message, rest);
  }

  #choiceAt(index: unknown): CollectedChoice {
    let choice = this.#choices.get(index);
    if (!choice) {
      this.size += entrySize;
      choice = {
        texts: new Map(),
        calls: [],
        callIndexes: new Map(),
        callIds: new Map(),
        functionCall: undefined,
        audio: undefined,
        logprobs: new Map(),
        finishReason: undefined,
        message: new Map(),
        choice: new Map(),
      };
      this.#choices.set(index, choice);
    }
    return choice;
  }

  /** Adds a piece of a call. The name and the other members arrive at once, and the text in pieces. */
  #addCall(choice: CollectedChoice, { index, id, type, function: called, custom, ...others }: Json): void {
    const given = isObject(called) ? called : isObject(custom) ? custom : {};
    const call = this.#callAt(choice, index, id, given["name"]);
    if (isSaid(id)) {
      call.id = id;
      if (!choice.callIds.has(id)) choice.callIds.set(id, call);
    }
    if (isSaid(type)) call.type = type;
    else if (isObject(custom)) call.type ??= "custom";
    if (typeof given["name"] === "string" && given["name"] !== "") call.name = given["name"];
    const text = given["arguments"] ?? given["input"];
    if (typeof text === "string") {
      call.text += text;
      this.size += text.length;
    }
    this.#addOthers(call.rest, others);
  }

  /**
   * Returns the call that a piece belongs to. If the server sends no index, an id or a name begins a call, and a piece
   * without either continues the last call.
   */
  #callAt(choice: CollectedChoice, index: unknown, id: unknown, name: unknown): CollectedCall {
    const { calls, callIndexes, callIds } = choice;
    const known = isSaid(index)
      ? callIndexes.get(index)
      : isSaid(id)
        ? callIds.get(id)
        : isSaid(name)
          ? undefined
          : calls.at(-1);
    if (known) return known;
    const call: CollectedCall = { id: undefined, type: undefined, name: "", text: "", rest: new Map() };
    calls.push(call);
    if (isSaid(index)) callIndexes.set(index, call);
    this.size += entrySize;
    return call;
  }

  #addFunctionCall(choice: CollectedChoice, { name, arguments: text }: Json): void {
    choice.functionCall ??= { name: "", arguments: "" };
    if (typeof name === "string" && name !== "") choice.functionCall.name = name;
    if (typeof text !== "string") return;
    choice.functionCall.arguments += text;
    this.size += text.length;
  }

  /** Adds a piece of audio. The id and expiry arrive at once, and the data and transcript in pieces. */
  #addAudio(choice: CollectedChoice, { data, transcript, ...others }: Json): void {
    choice.audio ??= { data: [], transcript: undefined, rest: new Map() };
    const { audio } = choice;
    if (typeof data === "string") {
      audio.data.push(data);
      this.size += data.length;
    }
    if (typeof transcript === "string") {
      audio.transcript = (audio.transcript ?? "") + transcript;
      this.size += transcript.length;
    }
    this.#addOthers(audio.rest, others);
  }

  #addLogprobs(choice: CollectedChoice, logprobs: Json): void {
    for (const [name, values] of Object.entries(logprobs)) {
      if (!Array.isArray(values)) continue;
      const all = choice.logprobs.get(name) ?? [];
      for (const value of values) all.push(value);
      choice.logprobs.set(name, all);
      this.size += JSON.stringify(values).length;
    }
  }

  /** Merges members into `target`. Lists are joined, and any other value replaces the earlier one. */
  #addOthers(target: Map<string, unknown>, others: Json): void {
    for (const [name, value] of Object.entries(others)) {
      if (!isSaid(value)) continue;
      const before = target.get(name);
      if (before === undefined || Array.isArray(value)) this.size += JSON.stringify(value).length;
      if (Array.isArray(before) && Array.isArray(value)) for (const entry of value) before.push(entry);
      else target.set(name, value);
    }
  }
}

/** Returns the JSON of a choice. If it has no finish reason at the end of the stream, the reason is `stop`. */
function choiceToWire(index: unknown, choice: CollectedChoice): Json {
  const { texts, calls, functionCall, audio, logprobs } = choice;
  return {
    ...Object.fromEntries(choice.choice),
    index,
    message: {
      role: "assistant",
      content: null,
      refusal: null,
      ...Object.fromEntries(choice.message),
      ...Object.fromEntries(texts),
      ...(calls.length > 0 ? { tool_calls: calls.map(callToWire) } : {}),
      ...(functionCall ? { function_call: functionCall } : {}),
      ...(audio ? { audio: audioToWire(audio) } : {}),
    },
    logprobs: logprobs.size === 0 ? null : Object.fromEntries(logprobs),
    finish_reason: choice.finishReason ?? "stop",
  };
}

function audioToWire({ data, transcript, rest }: CollectedAudio): Json {
  return {
    ...Object.fromEntries(rest),
    ...(data.length > 0 ? { data: joinBase64(data) } : {}),
    ...(transcript === undefined ? {} : { transcript }),
  };
}

/**
 * Joins pieces of base64. Some servers encode each piece separately, so that padding may end a piece. Other servers cut
 * one long text anywhere.
 */
function joinBase64(pieces: readonly string[]): string {
  const texts = pieces.join("").match(/[^=]+/g) ?? [];
  return Buffer.concat(texts.map((text) => Buffer.from(text, "base64"))).toString("base64");
}

function callToWire({ id, type, name, text, rest }: CollectedCall): Json {
  const others = Object.fromEntries(rest);
  if (type === "custom") return { ...others, id, type, custom: { name, input: text } };
  return { ...others, id, type: type ?? "function", function: { name, arguments: text } };
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
