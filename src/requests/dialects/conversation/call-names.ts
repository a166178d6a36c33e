// Names tools for a model server that has only functions and no namespaces, and maps its calls back.
import { toolSchema } from "../../../domain/tools/tool-schema.ts";
import type { CallNames, CallPart, Tool } from "./conversation.ts";
import type { ReplyCall, ReplySink } from "./reply.ts";
import { UnwrappedInput, wrappedInput } from "./wrapped-input.ts";

type Named = Pick<Tool, "kind" | "name" | "namespace">;

/** Maximum length of a function name at OpenAI and most other servers. Names may have letters, digits, `_` and `-`. */
const maxNameLength = 64;
const separator = "__";
const foreign = /[^A-Za-z0-9_-]/g;

/** A tool as the model server sees it: a function. */
export interface EngineFunction {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema from `toolSchema`. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly strict?: boolean | undefined;
}

/**
 * The tools of one request. Earlier calls in the conversation get the same names, even if their tools no longer exist.
 */
export class EngineTools {
  readonly #byName = new Map<string, Named>();
  readonly #names = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** The next number to try for each base name, so that many tools of one name are numbered quickly. */
  readonly #numbers = new Map<string, number>();

  constructor(tools: readonly Tool[]) {
    // Names functions without a namespace first, because these keep their names and no other tool may take such a name.
    for (const tool of tools) if (tool.namespace === undefined && tool.kind === "function") this.nameOf(tool);
    for (const tool of tools) this.nameOf(tool);
  }

  /** Tools whose name or kind at the model server differs from the client's, by their name there. */
  get names(): CallNames {
    return this.#byName;
  }

  nameOf({ kind, name, namespace }: Named): string {
    const key = JSON.stringify([kind, namespace ?? null, name]);
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const wanted = namespace === undefined ? name : `${namespace}${separator}${name}`;
    // A function of the client keeps a name with unusual characters, because only some servers refuse these and report
    // that themselves.
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

  /** Returns the arguments of a call as JSON text for the model server. */
  argumentsOf({ kind, input }: Pick<CallPart, "kind" | "input">): string {
    return kind === "custom" ? wrappedInput(input) : input;
  }

  /** Returns a name similar to the wanted one, within the length limit and different from all other names. */
  #free(wanted: string): string {
    const plain = wanted.replace(foreign, "_");
    // A name that is too long loses its beginning, which is the namespace: the end of a name says more.
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

/** Puts the grammar into the description for a model that cannot be constrained by it. */
function customDescription({ description, format }: Tool): string {
  const parts = [description, "Its `input` is plain text, not JSON."];
  if (format?.["type"] === "grammar") {
    parts.push(`It must follow this ${String(format["syntax"])} grammar:\n${String(format["definition"])}`);
  }
  return parts.filter((part) => part !== undefined && part !== "").join("\n\n");
}

/** Maps the calls of a model server to the client's tools; passes everything else on to `sink` unchanged. */
export class ClientCalls implements ReplySink {
  readonly #sink: ReplySink;
  readonly #names: CallNames;
  /** The inputs of calls of custom tools, by their index. */
  readonly #inputs = new Map<number, UnwrappedInput>();

  constructor(sink: ReplySink, names: CallNames) {
    this.#sink = sink;
    this.#names = names;
  }

  call(index: number, call: ReplyCall): void {
    const named = this.#names.get(call.name);
    // If the model server itself has custom tools, their input is not wrapped.
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
