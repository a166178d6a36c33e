// The generation loop: one prompt on one sequence, token by token, with exact counts and no hidden shift of the
// context. The library's LlamaChat is not used: it shifts the context (engine trap 3), rejects or withholds text at an
// abort (trap 6) and at the token limit, does not report its number of tokens, and cannot wait for a slow client.
import type { LlamaContextSequence, LlamaGrammarEvaluationState, Token } from "node-llama-cpp";
import type { Batching } from "./batching.ts";
import type { ReplyEvent, ReplyReader } from "./reply/reply-reader.ts";
import { TokenText } from "./reply/token-text.ts";
import { invalid } from "./request/request-error.ts";
import type { Runtime } from "./runtime.ts";
import { evaluateOptions, type Sampling } from "./sampling.ts";

export interface Generation {
  /**
   * The prompt. The caller has checked that it fits into the context with room for at least one more token (engine trap
   * 3).
   */
  prompt: Token[];
  maxTokens: number;
  sampling: Sampling;
  /** The index among the choices of the request. */
  choice: number;
  /**
   * Creates the reader. Called when the generation begins: starting a grammar takes milliseconds, and a request may
   * have many.
   */
  startReader: () => ReplyReader<LlamaGrammarEvaluationState>;
}

export interface Outcome {
  finishReason: "stop" | "length" | "tool_calls";
  /**
   * The number of all tokens after the prompt, including those that ended the reply or formed a stop text (engine trap
   * 4).
   */
  completionTokens: number;
}

/** Prompts are evaluated in portions of about this time, so that an abort and other sequences need not wait long. */
const portionMs = 250;
const smallestPortion = 32;

/**
 * Receives the events of a reply immediately. If it returns a promise, for example because a client does not read, at
 * most one more token is generated before the promise resolves; then the signal is checked. The promise must not
 * reject.
 */
export type Report = (events: readonly ReplyEvent[]) => Promise<void> | undefined;

/**
 * Generates a reply, reports it piece by piece, and resolves with how the reply ended. Rejects with the signal's reason
 * at most one token after an abort; the sequence is free then.
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
    // After an abort the state of the sequence is correct, so it can be used again.
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
  // The model is idle between a token and the next evaluation, so nothing is awaited in between.
  batching.enter();
  try {
    let upcoming = steps.next();
    for (;;) {
      if (reading.hasUnread) {
        try {
          await Promise.race([batching.underWay, upcoming]);
        } finally {
          // The last token is read even if no next token follows, because it belongs to the client.
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
      // A client waits for the first text. Later text can be read while the model works on the next token.
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

/** Turns tokens into text and reports what the reader finds in it. */
class Reading {
  readonly #reader: ReplyReader<LlamaGrammarEvaluationState>;
  readonly #text: TokenText;
  readonly #report: Report;
  #unread: Token | undefined;
  /** True if any event was reported. */
  begun = false;
  /** A promise, set if the client must read before more is generated. The code that has waited for it clears it. */
  backpressure: Promise<void> | undefined;

  constructor(reader: ReplyReader<LlamaGrammarEvaluationState>, text: TokenText, report: Report) {
    this.#reader = reader;
    this.#text = text;
    this.#report = report;
  }

  get hasUnread(): boolean {
    return this.#unread !== undefined;
  }

  /** Stores the next token, which `read` reads. */
  take(token: Token): void {
    this.#unread = token;
  }

  read(): void {
    if (this.#unread === undefined) return;
    const events = this.#reader.read(this.#text.push(this.#unread));
    this.#unread = undefined;
    if (events.length === 0) return;
    this.begun = true;
    // A client that has room again has read the earlier text too.
    this.backpressure = this.#report(events) ?? this.backpressure;
  }

  /** Call this method at the end of the reply. Reports the text that was held back. */
  finish(): void {
    this.#report([...this.#reader.read(this.#text.flush()), ...this.#reader.finish()]);
  }
}

/** Waits for the client to read, and for paused batches to continue, without delaying the other generations. */
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

/** Returns the error for a forbidden token, which is chosen only if the grammar allows no other. */
function nothingAllowed(): Error {
  return invalid(
    "logit_bias forbids every token with which the answer could go on as response_format or the tools demand. " +
      "Forbid fewer tokens.",
  );
}

/**
 * Evaluates the prompt except for a last portion, which it returns. Tokens of the prompt that the sequence already
 * holds are kept. The counts of a request never depend on what was kept.
 */
async function evaluatePrompt(
  sequence: LlamaContextSequence,
  runtime: Runtime,
  prompt: Token[],
  signal: AbortSignal,
): Promise<Token[]> {
  const { batching } = runtime;
  // The last token must be evaluated again in any case, since its result is the first token of the reply.
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
