// Represents the beginning of a prompt as a chain of hashes: two prompts share as many hashes as they are equal from
// the start.
import type { DecodedRequest } from "../../requests/decoded-request.ts";

/** Characters between two hashes: few where prompts are short, many where they are long. */
const steps = [
  { until: 8 * 1024, size: 512 },
  { until: 64 * 1024, size: 2 * 1024 },
  { until: Number.POSITIVE_INFINITY, size: 8 * 1024 },
] as const;
/** Limits the work for one request; the chain then covers about 1.7 million characters. */
const maxHashes = 256;

export class PromptPrefix {
  /** Each hash stands for everything up to its end. */
  readonly hashes: number[] = [];
  /** The end of each hash, in characters. */
  readonly ends: number[] = [];
  /** Characters of the whole prompt. */
  length = 0;
  /** Hash of what all requests of a conversation share: everything up to the first user message. */
  origin = 0;
  /** The end of the part that `origin` stands for, in characters. */
  originEnd = 0;
  /**
   * True if the prompt has more messages after `originEnd`: the conversation has had an answer before, perhaps
   * elsewhere.
   */
  continues = false;
}

/**
 * Returns the chain of a request's prompt: tools first, because models read them before the messages, then role and
 * content of each message. Chains of different accounts share nothing, whatever their content. Undefined for
 * embeddings, because servers cache nothing of their prompts.
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
  /** Characters that the chain still needs for its next hash. */
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
    // An item that is no message, such as a tool call.
    if (role === undefined && content === undefined) {
      this.addValue(message);
      return;
    }
    // One letter distinguishes the roles: hashing the whole role would take longer than a short message.
    if (typeof role === "string") this.#hash = Math.imul(this.#hash ^ role.charCodeAt(0), 0x9e3779b1) >>> 0;
    this.addValue(content);
    if (calls !== undefined && calls !== null) this.add(JSON.stringify(calls));
    if (this.#userSpoke) this.#prefix.continues = true;
    if (role !== "user" || this.#userSpoke) return;
    this.#userSpoke = true;
    this.#prefix.origin = this.#hash;
    this.#prefix.originEnd = this.#prefix.length;
  }

  /** Adds a text, a list of texts or token ids, or parts of a message, with the URL or data of media. */
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

/** Returns the characters from a hash that ends at `length` to the next one. */
export function stepAt(length: number): number {
  for (const { until, size } of steps) if (length < until) return size;
  return steps[2].size;
}
