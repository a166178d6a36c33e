// Represents a prompt as a series of hashes, each of the text from the start up to some position. Prompts with the same
// beginning have the same first hashes.
import type { DecodedRequest } from "../../requests/decoded-request.ts";

/** Numbers of characters between two hashes: few at the beginning of a prompt, and more further on. */
const steps = [
  { until: 8 * 1024, size: 512 },
  { until: 64 * 1024, size: 2 * 1024 },
  { until: Number.POSITIVE_INFINITY, size: 8 * 1024 },
] as const;
/** Maximum hashes of one prompt, to limit the work. They cover about 1.7 million characters. */
const maxHashes = 256;

export class PromptPrefix {
  /** Hashes of the prompt. Each covers the text from the start to the position in `ends` with the same index. */
  readonly hashes: number[] = [];
  /** For each hash, the position in characters at which its text ends. */
  readonly ends: number[] = [];
  /** Length of the whole prompt in characters. */
  length = 0;
  /** Hash of the text up to and including the first user message. All requests of a conversation share this hash. */
  origin = 0;
  /** Position in characters at which the text of `origin` ends. */
  originEnd = 0;
  /** True if messages follow the first user message, so that the conversation was answered before. */
  continues = false;
}

/**
 * Returns the hashes of a request's prompt: first tools and instructions, in the order in which models read them, then
 * the messages. Different accounts never have the same hashes. Returns undefined for embeddings, because servers do not
 * cache their prompts.
 */
export function promptPrefixOf(request: DecodedRequest, accountId: string): PromptPrefix | undefined {
  const { dialect, body } = request;
  if (!dialect.generates) return undefined;
  const chain = new Chain(accountId);
  for (const name of ["tools", "functions", "instructions", "system"] as const) {
    const member = request.members.get(name);
    if (member) chain.add(request.text.slice(member.valueStart, member.valueEnd));
  }
  const prompt = body[dialect.promptMember];
  if (!dialect.isConversation) chain.addValue(prompt);
  else if (Array.isArray(prompt)) for (const message of prompt) chain.addMessage(message);
  return chain.end();
}

class Chain {
  readonly #prefix = new PromptPrefix();
  #hash: number;
  /** Characters until the next hash. */
  #missing: number = steps[0].size;
  #userSpoke = false;

  constructor(accountId: string) {
    this.#hash = Bun.hash.xxHash32(accountId);
  }

  end(): PromptPrefix {
    if (!this.#userSpoke) this.#prefix.origin = this.#prefix.hashes[0] ?? this.#hash;
    return this.#prefix;
  }

  add(text: string): void {
    const { hashes, ends } = this.#prefix;
    let from = 0;
    while (hashes.length < maxHashes && text.length - from >= this.#missing) {
      const to = from + this.#missing;
      this.#hash = Bun.hash.xxHash32(text.slice(from, to), this.#hash);
      this.#prefix.length += to - from;
      hashes.push(this.#hash);
      ends.push(this.#prefix.length);
      this.#missing = stepAt(this.#prefix.length);
      from = to;
    }
    if (from === text.length) return;
    if (hashes.length < maxHashes) {
      this.#hash = Bun.hash.xxHash32(from === 0 ? text : text.slice(from), this.#hash);
      this.#missing -= text.length - from;
    }
    this.#prefix.length += text.length - from;
  }

  addMessage(message: { role?: unknown; content?: unknown; tool_calls?: unknown }): void {
    const { role, content, tool_calls: calls } = message;
    // If both are missing, the item is no message, but for example a tool call.
    if (role === undefined && content === undefined) {
      this.addValue(message);
      return;
    }
    // Only the first letter of the role is hashed. It distinguishes the roles, and this is faster than hashing the
    // whole word.
    if (typeof role === "string") this.#hash = Math.imul(this.#hash ^ role.charCodeAt(0), 0x9e3779b1) >>> 0;
    this.addValue(content);
    if (calls !== undefined && calls !== null) this.add(JSON.stringify(calls));
    if (this.#userSpoke) this.#prefix.continues = true;
    if (role !== "user" || this.#userSpoke) return;
    this.#userSpoke = true;
    this.#prefix.origin = this.#hash;
    this.#prefix.originEnd = this.#prefix.length;
  }

  /** Adds the text of any value: a string, a list of strings or token ids, or message parts, including media. */
  addValue(value: unknown): void {
    if (typeof value === "string") this.add(value);
    else if (Array.isArray(value)) {
      if (typeof value[0] === "number") this.add(value.join(" "));
      else for (const part of value) this.addValue(part);
    } else if (typeof value === "object" && value !== null) {
      for (const part of Object.values(value)) if (typeof part !== "number") this.addValue(part);
    }
  }
}

/** Returns the number of characters between a hash that ends at `length` and the next hash. */
export function stepAt(length: number): number {
  for (const { until, size } of steps) if (length < until) return size;
  return steps[2].size;
}
