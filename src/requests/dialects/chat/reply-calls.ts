// Collects streamed tool calls. Servers differ in how they mark which call a piece belongs to.
import type { ReplySink } from "../conversation/reply.ts";
import { isObject, type Json, objectOf, textOf } from "./json-value.ts";

interface Call {
  readonly index: number;
  id: string | undefined;
  kind: "function" | "custom" | undefined;
  name: string | undefined;
  isSent: boolean;
  /** Pieces of the arguments that arrived before the name. */
  readonly buffered: string[];
}

export class ReplyCalls {
  /** Number of calls that were passed to the sink. */
  count = 0;
  readonly #calls: Call[] = [];
  /** The last call with each index. `#byId` has the last call with each id. */
  readonly #byIndex = new Map<unknown, Call>();
  readonly #byId = new Map<string, Call>();
  #older: Call | undefined;

  /** Adds a piece of a stream. Names and ids arrive at once, and arguments in pieces. */
  add(piece: Json, sink: ReplySink): void {
    const called = calledBy(piece);
    const id = textOf(piece["id"]);
    const name = textOf(called["name"]);
    const call = this.#callOf(piece["index"], id, name);
    call.kind ??= kindOf(piece);
    this.#go(call, id, name, called, sink);
  }

  /** Adds a call from an answer that is not streamed. */
  addWhole(piece: Json, sink: ReplySink): void {
    const called = calledBy(piece);
    const call = this.#begin();
    call.kind = kindOf(piece);
    this.#go(call, textOf(piece["id"]), textOf(called["name"]), called, sink);
  }

  /** Adds a piece of the legacy `function_call`, of which there can be only one. */
  addOlder(piece: Json, sink: ReplySink): void {
    this.#older ??= this.#begin();
    this.#go(this.#older, undefined, textOf(piece["name"]), piece, sink);
  }

  /**
   * Called at the end of the answer. Passes on calls that never got a name, so that their arguments are not lost. A
   * piece without name and arguments is no call.
   */
  end(sink: ReplySink): void {
    for (const call of this.#calls) if (!call.isSent && call.buffered.length > 0) this.#send(call, sink);
  }

  #go(call: Call, id: string | undefined, name: string | undefined, called: Json, sink: ReplySink): void {
    call.id ??= id;
    if (call.id !== undefined) this.#byId.set(call.id, call);
    call.name ??= name;
    if (!call.isSent && call.name !== undefined) this.#send(call, sink);
    const text = argumentText(called["arguments"] ?? called["input"]);
    if (text === "") return;
    if (call.isSent) sink.arguments(call.index, text);
    else call.buffered.push(text);
  }

  /**
   * Returns the call that a piece belongs to. Most servers number the calls. If an index is repeated with another id
   * and a name, a new call begins, because old versions of Ollama gave the same index to all calls. Without an index,
   * an id or a name begins a call, and a piece without either continues the last call.
   */
  #callOf(index: unknown, id: string | undefined, name: string | undefined): Call {
    const isCounted = index !== undefined && index !== null;
    const known = isCounted
      ? this.#byIndex.get(index)
      : id !== undefined
        ? this.#byId.get(id)
        : name !== undefined
          ? undefined
          : this.#calls.at(-1);
    const isOther = known?.id !== undefined && id !== undefined && known.id !== id && name !== undefined;
    if (known && !isOther) return known;
    const call = this.#begin();
    if (isCounted) this.#byIndex.set(index, call);
    return call;
  }

  #begin(): Call {
    const call: Call = {
      index: this.#calls.length,
      id: undefined,
      kind: undefined,
      name: undefined,
      isSent: false,
      buffered: [],
    };
    this.#calls.push(call);
    return call;
  }

  #send(call: Call, sink: ReplySink): void {
    call.isSent = true;
    this.count++;
    call.id ??= `call_${crypto.randomUUID().replaceAll("-", "")}`;
    sink.call(call.index, { callId: call.id, kind: call.kind ?? "function", name: call.name ?? "" });
    if (call.buffered.length > 0) sink.arguments(call.index, call.buffered.join(""));
    call.buffered.length = 0;
  }
}

function kindOf(piece: Json): Call["kind"] {
  if (piece["type"] === "custom" || isObject(piece["custom"])) return "custom";
  return isObject(piece["function"]) ? "function" : undefined;
}

function calledBy({ function: called, custom }: Json): Json {
  return isObject(custom) ? custom : objectOf(called);
}

/** Returns arguments as JSON text. Some servers send them as an object. */
function argumentText(value: unknown): string {
  if (typeof value === "string") return value;
  return isObject(value) ? JSON.stringify(value) : "";
}
