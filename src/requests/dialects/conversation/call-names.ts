// Names tools for a model server that knows only functions and no namespaces. Converts its calls back.
import { toolSchema } from "../../../domain/tools/tool-schema.ts";
import type { CallNames, CallPart, Tool } from "./conversation.ts";
import type { ReplyCall, ReplySink } from "./reply.ts";
import { UnwrappedInput, wrappedInput } from "./wrapped-input.ts";

type Named = Pick<Tool, "kind" | "name" | "namespace">;

/**
 * Maximum length of a function's name at OpenAI and most other servers. A name may have letters, digits, `_` and `-`.
 */
const maxNameLength = 64;
const separator = "__";
const foreign = /[^A-Za-z0-9_-]/g;

/** A tool in the form that the model server gets, which is always a function. */
export interface EngineFunction {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema of the arguments, from `toolSchema`. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly strict?: boolean | undefined;
}

/**
 * The tools of one request with their names. Earlier calls in the conversation get the same names, even if their tools
 * no longer exist.
 */
export class EngineTools {
  readonly #byName = new Map<string, Named>();
  readonly #names = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** For each base name, the next number to try. So many tools with the same name are numbered quickly. */
  readonly #numbers = new Map<string, number>();

  constructor(tools: readonly Tool[]) {
    // Functions without a namespace are named first, because they keep their names. No other tool may take such a name.
    for (const tool of tools) if (tool.namespace === undefined && tool.kind === "function") this.nameOf(tool);
    for (const tool of tools) this.nameOf(tool);
  }

  /**
   * Tools whose name or kind at the model server differs from the client's. The key is the name at the model server.
   */
  get names(): CallNames {
    return this.#byName;
  }

  nameOf({ kind, name, namespace }: Named): string {
    const key = JSON.stringify([kind, namespace ?? null, name]);
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const wanted = namespace === undefined ? name : `${namespace}${separator}${name}`;
    // The client's function keeps its name even if it has unusual characters. Only some servers refuse such characters,
    // and their errors say so.
    const isOwn = namespace === undefined && kind === "function";
    const keepsName = isOwn && name.length <= maxNameLength && !this.#taken.has(name);
    const given = keepsName ? name : this.#free(wanted);
    this.#names.set(key, given);
    this.#taken.add(given);
    if (given !== name || kind === "custom") this.#byName.set(given, { kind, name, namespace });
    return given;
  }

  functionOf(tool: Tool): EngineFunction {
    const name = this.nameOf(tool);
    if (tool.kind === "function") {
      const { description, parameters, strict } = tool;
      return { name, description, parameters: toolSchema(parameters, strict), strict };
    }
    return { name, description: customDescription(tool), parameters: inputSchema };
  }

  /** Returns the arguments of a call as JSON text, in the form that the model server knows. */
  argumentsOf({ kind, input }: Pick<CallPart, "kind" | "input">): string {
    return kind === "custom" ? wrappedInput(input) : input;
  }

  /** Returns a name that is similar to the wanted one, short enough, and different from all other names. */
  #free(wanted: string): string {
    const plain = wanted.replace(foreign, "_");
    // A name that is too long is cut at its beginning, which is the namespace, because its end is more specific.
    const base = plain.slice(-maxNameLength);
    for (let number = this.#numbers.get(base) ?? 1; ; number++) {
      const end = number === 1 ? "" : `_${number}`;
      const candidate = plain.slice(end.length - maxNameLength) + end;
      if (this.#taken.has(candidate)) continue;
      this.#numbers.set(base, number + 1);
      return candidate;
    }
  }
}

const inputSchema = {
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
} as const;

/** Returns a description that contains the grammar, because the model server cannot enforce the grammar. */
function customDescription({ description, format }: Tool): string {
  const parts = [description, "Its `input` is plain text, not JSON."];
  if (format?.["type"] === "grammar") {
    parts.push(`It must follow this ${String(format["syntax"])} grammar:\n${String(format["definition"])}`);
  }
  return parts.filter((part) => part !== undefined && part !== "").join("\n\n");
}

/** Converts the calls of a model server back to the client's tools. Passes everything else to `sink` unchanged. */
export class ClientCalls implements ReplySink {
  readonly #sink: ReplySink;
  readonly #names: CallNames;
  /** Inputs of the calls of custom tools, by the index of the call. */
  readonly #inputs = new Map<number, UnwrappedInput>();

  constructor(sink: ReplySink, names: CallNames) {
    this.#sink = sink;
    this.#names = names;
  }

  call(index: number, call: ReplyCall): void {
    const named = this.#names.get(call.name);
    // The input is not wrapped if the model server itself supports custom tools.
    if (named?.kind === "custom" && call.kind === "function") this.#inputs.set(index, new UnwrappedInput());
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
