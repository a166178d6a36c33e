// What a prompt begins with, as a chain of hashes: two prompts have as many in common as they are alike from the start.
import type { DecodedRequest } from "../../requests/decoded-request.ts";

/** Characters from one hash to the next: fine where prompts are short, coarse where they are long. */
const steps = [
  { until: 8 * 1024, size: 512 },
  { until: 64 * 1024, size: 2 * 1024 },
  { until: Number.POSITIVE_INFINITY, size: 8 * 1024 },
] as const;
/** Bounds the work for one request; the chain is then some 1.7 million characters long. */
const maxHashes = 256;

export class PromptPrefix {
  /** Each stands for everything up to its end. */
  readonly hashes: number[] = [];
  /** Where each ends, in characters. */
  readonly ends: number[] = [];
  /** Characters of the whole prompt. */
  length = 0;
  /** What all turns of a conversation have in common: everything up to the first thing that the user said. */
  origin = 0;
  /** Where that ends. */
  originEnd = 0;
  /** Whether there is more than that: then somebody was asked before, if not here. */
  continues = false;
}

/**
 * The chain of a request's prompt: tools first, as models are shown them before the messages, then role and content of
 * each message. Chains of different accounts have nothing in common, whatever they say. Undefined for embeddings, of
 * which nothing is kept.
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
  /** Characters since the last entry of the chain, and those that the next one still needs. */
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
    // An item that is no message, such as a call of a tool.
    if (role === undefined && content === undefined) {
      this.addValue(message);
      return;
    }
    // One letter tells the roles apart: a hash of each would take longer than one of a short message.
    if (typeof role === "string") this.#hash = Math.imul(this.#hash ^ role.charCodeAt(0), 0x9e3779b1) >>> 0;
    this.addValue(content);
    if (calls !== undefined && calls !== null) this.add(JSON.stringify(calls));
    if (this.#userSpoke) this.#prefix.continues = true;
    if (role !== "user" || this.#userSpoke) return;
    this.#userSpoke = true;
    this.#prefix.origin = this.#hash;
    this.#prefix.originEnd = this.#prefix.length;
  }

  /** A text, a list of texts or of token ids, or parts of a message, with the address or the data of media. */
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

/** Characters from a hash that ends at `length` to the next one. */
export function stepAt(length: number): number {
  for (const { until, size } of steps) if (length < until) return size;
  return steps[2].size;
}
