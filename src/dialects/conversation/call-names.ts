// Tools as an engine knows them that has functions alone and no groups of them, and the way back of its calls.
import type { CallNames, CallPart, Tool } from "./conversation.ts";
import type { ReplyCall, ReplySink } from "./reply.ts";
import { UnwrappedInput, wrappedInput } from "./wrapped-input.ts";

type Named = Pick<Tool, "kind" | "name" | "namespace">;

/** OpenAI and most servers bound the name of a function so: letters, digits, `_` and `-`. */
const longestName = 64;
const separator = "__";

/** A tool as a function. */
export interface EngineFunction {
  readonly name: string;
  readonly description?: string | undefined;
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  readonly strict?: boolean | undefined;
}

/** The tools of one request. Calls of the conversation so far are given the same names, whether their tools are still there or not. */
export class EngineTools {
  readonly #byName = new Map<string, Named>();
  readonly #names = new Map<string, string>();

  constructor(tools: readonly Tool[]) {
    // What keeps its name goes first, so that no joined name takes it.
    for (const tool of tools) if (tool.namespace === undefined) this.nameOf(tool);
    for (const tool of tools) this.nameOf(tool);
  }

  /** Those whose calls have to be told back under another name, or as another kind. */
  get names(): CallNames {
    return this.#byName;
  }

  nameOf({ kind, name, namespace }: Named): string {
    const key = `${kind} ${namespace ?? ""} ${name}`;
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const given = namespace === undefined ? name : this.#joined(namespace, name);
    this.#names.set(key, given);
    if (given !== name || kind === "custom") this.#byName.set(given, { kind, name, namespace });
    return given;
  }

  functionOf(tool: Tool): EngineFunction {
    const name = this.nameOf(tool);
    if (tool.kind === "function") {
      const { description, parameters, strict } = tool;
      return { name, description, parameters, strict };
    }
    return { name, description: customDescription(tool), parameters: inputSchema };
  }

  /** The arguments of a call as an engine gets them: JSON text. */
  argumentsOf({ kind, input }: Pick<CallPart, "kind" | "input">): string {
    return kind === "custom" ? wrappedInput(input) : input;
  }

  /** The name is bounded, and no other tool's. */
  #joined(namespace: string, name: string): string {
    const joined = `${namespace}${separator}${name}`.replace(/[^A-Za-z0-9_-]/g, "_");
    const taken = new Set(this.#names.values());
    for (let number = 1; ; number++) {
      const end = number === 1 ? "" : `_${number}`;
      // The name itself says more than its group: that is what is cut.
      const candidate =
        joined.length + end.length > longestName ? joined.slice(end.length - longestName) + end : joined + end;
      if (!taken.has(candidate)) return candidate;
    }
  }
}

const inputSchema = {
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
} as const;

/** A model that cannot be held to a grammar is told of it. */
function customDescription({ description, format }: Tool): string {
  const parts = [description, "Its `input` is plain text, not JSON."];
  if (format?.["type"] === "grammar") {
    parts.push(`It must follow this ${String(format["syntax"])} grammar:\n${String(format["definition"])}`);
  }
  return parts.filter((part) => part !== undefined && part !== "").join("\n\n");
}

/** Tells the calls of an engine to `sink` as the client knows its tools; everything else as it is. */
export class ClientCalls implements ReplySink {
  readonly #sink: ReplySink;
  readonly #names: CallNames;
  /** The inputs of custom tools, by the index of their call. */
  readonly #inputs = new Map<number, UnwrappedInput>();

  constructor(sink: ReplySink, names: CallNames) {
    this.#sink = sink;
    this.#names = names;
  }

  call(index: number, call: ReplyCall): void {
    const named = this.#names.get(call.name);
    if (named?.kind === "custom") this.#inputs.set(index, new UnwrappedInput());
    this.#sink.call(index, named ? { ...call, ...named } : call);
  }

  arguments(index: number, text: string): void {
    const input = this.#inputs.get(index);
    const given = input ? input.add(text) : text;
    if (given !== "") this.#sink.arguments(index, given);
  }

  end(end: Parameters<ReplySink["end"]>[0]): void {
    for (const [index, input] of this.#inputs) {
      const rest = input.end();
      if (rest !== "") this.#sink.arguments(index, rest);
    }
    this.#sink.end(end);
  }

  block(): void {
    this.#sink.block();
  }

  text(text: string, logprobs?: readonly unknown[]): void {
    this.#sink.text(text, logprobs);
  }

  refusal(text: string): void {
    this.#sink.refusal(text);
  }

  reasoning(text: string, isSummary: boolean): void {
    this.#sink.reasoning(text, isSummary);
  }

  proof(proof: Parameters<ReplySink["proof"]>[0]): void {
    this.#sink.proof(proof);
  }

  usage(usage: Parameters<ReplySink["usage"]>[0]): void {
    this.#sink.usage(usage);
  }
}
