// Generates a reply token by token on one sequence. LlamaChat of node-llama-cpp is not used: it silently drops
// old context, loses text at an abort and at the token limit, does not report its token count, and cannot wait
// for a slow client.
import type { LlamaContextSequence, LlamaGrammarEvaluationState, Token } from "node-llama-cpp";
import type { Batching } from "./batching.ts";
import type { ReplyEvent, ReplyReader } from "./reply/reply-reader.ts";
import { TokenText } from "./reply/token-text.ts";
import { invalid } from "./request/request-error.ts";
import type { Runtime } from "./runtime.ts";
import { evaluateOptions, type Sampling } from "./sampling.ts";

export interface Generation {
  /** The prompt. The caller has checked that at least one more token fits into the context. */
  prompt: Token[];
  maxTokens: number;
  sampling: Sampling;
  /** The index among the choices of the request. */
  choice: number;
  /** Creates the reader. Called only when the generation begins, because compiling its grammar takes milliseconds. */
  startReader: () => ReplyReader<LlamaGrammarEvaluationState>;
}

export interface Outcome {
  finishReason: "stop" | "length" | "tool_calls";
  /** The number of tokens after the prompt, including tokens that ended the reply and were not delivered. */
  completionTokens: number;
}

/**
 * Prompts are evaluated in portions of about this duration, so that an abort and other sequences need not wait
 * long.
 */
const portionMs = 250;
const smallestPortion = 32;

/**
 * Receives the events of a reply. If it returns a promise, at most one more token is generated until the promise
 * resolves. The promise must not reject.
 */
export type Report = (events: readonly ReplyEvent[]) => Promise<void> | undefined;

/**
 * Generates a reply and reports its events. Resolves with how the reply ended. After an abort, rejects with the
 * signal's reason, at most one token later.
 */
export async function generate(
  runtime: Runtime,
  generation: Generation,
  signal: AbortSignal,
  report: Report,
): Promise<Outcome> {
  if (generation.maxTokens === 0) return { finishReason: "length", completionTokens: 0 };
  const lease = await runtime.pool.acquire(generation.prompt, signal);
  let broken = false;
  try {
    return await generateOn(lease.sequence, runtime, generation, signal, report);
  } catch (error) {
    // An abort leaves the sequence in a valid state, so it can be reused.
    broken = !signal.aborted;
    throw error;
  } finally {
    await lease.release(broken);
  }
}

async function generateOn(
  sequence: LlamaContextSequence,
  runtime: Runtime,
  { prompt, maxTokens, sampling, choice, startReader }: Generation,
  signal: AbortSignal,
  report: Report,
): Promise<Outcome> {
  const { model, batching } = runtime;
  const reader = startReader();
  const limit = Math.min(maxTokens, runtime.context.contextSize - prompt.length);
  const last = await evaluatePrompt(sequence, runtime, prompt, signal);
  const generated: Token[] = [];
  const reading = new Reading(reader, new TokenText(model, prompt), report);
  const options = evaluateOptions(sampling, choice, generated, runtime.context.contextSize, () => reader.grammar);
  const steps = sequence.evaluateWithMetadata(last, {}, options);
  const ended = (): Outcome => ({
    finishReason: reader.calledTools ? "tool_calls" : "stop",
    completionTokens: generated.length,
  });
  // The model is idle while no evaluation is queued. So the loop awaits nothing between a token and the next
  // evaluation.
  batching.enter();
  try {
    let upcoming = steps.next();
    for (;;) {
      if (reading.hasUnread) {
        try {
          await Promise.race([batching.underWay, upcoming]);
        } finally {
          // If there is no next token, the last token must still be delivered to the client.
          reading.read();
        }
      }
      const step = await upcoming;
      signal.throwIfAborted();
      if (reader.ended) return ended();
      const token = step.value?.token;
      if (token === undefined) throw new Error("the sequence ended without a token");
      if (sampling.banned.has(token)) throw nothingAllowed();
      generated.push(token);
      runtime.generatedTokens += 1;
      if (model.isEogToken(token)) {
        reading.finish();
        return ended();
      }
      reading.take(token);
      const full = generated.length >= limit;
      // The first text is delivered at once, because the client waits for it. Later text is read while the model
      // computes the next token.
      if (
        reading.begun &&
        !reader.steers &&
        !full &&
        reading.backpressure === undefined &&
        batching.pause === undefined
      ) {
        upcoming = steps.next();
        continue;
      }
      reading.read();
      if (reader.ended) return ended();
      if (full) break;
      if (reading.backpressure !== undefined || batching.pause !== undefined) await standBy(batching, reading, signal);
      const injected = model.tokenize(reader.takeInjection(), true, "trimLeadingSpace");
      generated.push(...injected);
      if (generated.length >= limit) break;
      upcoming = injected.length === 0 ? steps.next() : steps.next([token, ...injected]);
    }
    reading.finish();
    return { finishReason: "length", completionTokens: Math.min(generated.length, limit) };
  } finally {
    batching.leave();
    await steps.return();
  }
}

/** Converts tokens to text, and reports the events that the reply reader finds in it. */
class Reading {
  readonly #reader: ReplyReader<LlamaGrammarEvaluationState>;
  readonly #text: TokenText;
  readonly #report: Report;
  #unread: Token | undefined;
  /** True if any event was reported. */
  begun = false;
  /** Set if the client must read before more is generated. `standBy` waits for the promise and clears it. */
  backpressure: Promise<void> | undefined;

  constructor(reader: ReplyReader<LlamaGrammarEvaluationState>, text: TokenText, report: Report) {
    this.#reader = reader;
    this.#text = text;
    this.#report = report;
  }

  get hasUnread(): boolean {
    return this.#unread !== undefined;
  }

  /** Stores a token for the next call of `read`. */
  take(token: Token): void {
    this.#unread = token;
  }

  read(): void {
    if (this.#unread === undefined) return;
    const events = this.#reader.read(this.#text.push(this.#unread));
    this.#unread = undefined;
    if (events.length === 0) return;
    this.begun = true;
    // Once the client reads again, it has read all earlier text too, so only the last promise matters.
    this.backpressure = this.#report(events) ?? this.backpressure;
  }

  /** Call this at the end of the reply. Reports the text that was held back. */
  finish(): void {
    this.#report([...this.#reader.read(this.#text.flush()), ...this.#reader.finish()]);
  }
}

/** Waits until the client reads and until paused batches continue. Other generations go on meanwhile. */
async function standBy(batching: Batching, reading: Reading, signal: AbortSignal): Promise<void> {
  batching.leave();
  try {
    await reading.backpressure;
    reading.backpressure = undefined;
    await batching.pause;
  } finally {
    batching.enter();
  }
  signal.throwIfAborted();
}

/** Returns the error for a token that the client banned. It is generated only if the grammar allows no other token. */
function nothingAllowed(): Error {
  return invalid(
    "logit_bias forbids every token with which the answer could go on as response_format or the tools demand. " +
      "Forbid fewer tokens.",
  );
}

/**
 * Evaluates the prompt except for its last portion, and returns that portion. Reuses the prompt tokens that the
 * sequence already holds; the counts of a request do not depend on this.
 */
async function evaluatePrompt(
  sequence: LlamaContextSequence,
  runtime: Runtime,
  prompt: Token[],
  signal: AbortSignal,
): Promise<Token[]> {
  const { batching } = runtime;
  // The last token is always evaluated again, because its result is the first token of the reply.
  await batching.between(() => sequence.adaptStateToTokens(prompt.slice(0, -1), false));
  let portion = Math.min(runtime.context.batchSize, Math.max(smallestPortion, runtime.promptPortion));
  let from = sequence.nextTokenIndex;
  while (prompt.length - from > portion) {
    const started = performance.now();
    await batching.pause;
    batching.enter();
    try {
      await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(from, from + portion));
    } finally {
      batching.leave();
    }
    signal.throwIfAborted();
    from += portion;
    const elapsedMs = performance.now() - started;
    if (elapsedMs > portionMs) portion = Math.max(smallestPortion, portion >> 1);
    else if (elapsedMs < portionMs / 2) portion = Math.min(runtime.context.batchSize, portion * 2);
    runtime.promptPortion = portion;
  }
  await batching.pause;
  return prompt.slice(from);
}
