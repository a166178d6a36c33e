// Checks that a prompt and its reply fit into the context. A prompt is never truncated.
import type { Token } from "node-llama-cpp";
import type { Runtime } from "../runtime.ts";
import { invalid, overlong } from "./request-error.ts";

/**
 * Refuses a text with so many bytes that it cannot fit, without tokenizing it. Tokenizing megabytes would delay
 * all other requests.
 */
export function refuseHopelessLength(runtime: Runtime, byteCount: number, what: string): void {
  if (byteCount <= runtime.contextSize * runtime.maxTokenBytes) return;
  const least = Math.ceil(byteCount / runtime.maxTokenBytes);
  throw tooLong(runtime.contextSize, `more than ${least}`, what);
}

/** Throws a RequestError if the prompt leaves no room for a token of the reply. */
export function checkPromptLength(runtime: Runtime, prompt: readonly Token[], what: string): void {
  if (prompt.length + 1 > runtime.contextSize) throw tooLong(runtime.contextSize, String(prompt.length), what);
}

function tooLong(contextSize: number, count: string, what: string): Error {
  return overlong(
    `This model's maximum context length is ${contextSize} tokens, but the length of ${what} is ${count} tokens. ` +
      "Shorten it.",
    what,
  );
}

/**
 * Returns the maximum number of tokens to generate, by default the context size. Throws a RequestError for more.
 * If the prompt leaves less room, the reply ends with finish_reason "length".
 */
export function checkMaxTokens(runtime: Runtime, asked: number | undefined, name: string): number {
  if (asked === undefined) return runtime.contextSize;
  if (asked <= runtime.contextSize) return asked;
  throw invalid(`${name} must be at most ${runtime.contextSize}, the model's context length.`, name);
}
