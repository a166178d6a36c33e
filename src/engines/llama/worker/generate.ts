// The generation loop: one prompt on one sequence, token by token, with exact counts and no hidden shift of the context.
// The library's LlamaChat is not used: it shifts the context (engine trap 3), rejects or withholds text at an abort
// (trap 6) and at the token limit, does not tell how many tokens it made, and cannot wait for a slow client.
import type { LlamaContextSequence, LlamaGrammarEvaluationState, Token } from "node-llama-cpp";
import type { Batching } from "./batching.ts";
import type { ReplyEvent, ReplyReader } from "./reply/reply-reader.ts";
import { TokenText } from "./reply/token-text.ts";
import { invalid } from "./request/request-error.ts";
import type { Runtime } from "./runtime.ts";
import { evaluateOptions, type Sampling } from "./sampling.ts";

export interface Generation {
  /** Fits into the context with room for at least one more token; the caller has checked (engine trap 3). */
  prompt: Token[];
  maxTokens: number;
  sampling: Sampling;
  /** Index among the choices of the request. */
  choice: number;
  /** Called when the generation's turn has come: starting a grammar takes milliseconds, and a request may have many. */
  startReader: () => ReplyReader<LlamaGrammarEvaluationState>;
}

export interface Outcome {
  finishReason: "stop" | "length" | "tool_calls";
  /** Every token after the prompt, those that ended the reply or formed a stop text included (engine trap 4). */
  completionTokens: number;
}

/** Prompts are evaluated in portions of about this time, so that an abort and other sequences need not wait long. */
const portionMs = 250;
const smallestPortion = 32;

/**
 * Takes what a reply tells, as soon as it does. Where it gives a promise, as for a client that does not read, at most
 * one more token is generated before that is resolved; then the signal is looked at. It must not reject.
 */
export type Tell = (events: readonly ReplyEvent[]) => Promise<void> | undefined;

/**
 * Tells the reply as it is generated; resolves with how it ended. Rejects with the signal's reason at most one token
 * after an abort; the sequence is free again then.
 */
export async function generate(
  runtime: Runtime,
  generation: Generation,
  signal: AbortSignal,
  tell: Tell,
): Promise<Outcome> {
  if (generation.maxTokens === 0) return { finishReason: "length", completionTokens: 0 };
  const lease = await runtime.pool.acquire(generation.prompt, signal);
  let broken = false;
  try {
    return await generateOn(lease.sequence, runtime, generation, signal, tell);
  } catch (error) {
    // After an abort the sequence holds exactly what it was given, and is as good as before.
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
  tell: Tell,
): Promise<Outcome> {
  const { model, batching } = runtime;
  const reader = startReader();
  const limit = Math.min(maxTokens, runtime.context.contextSize - prompt.length);
  const last = await evaluatePrompt(sequence, runtime, prompt, signal);
  const generated: Token[] = [];
  const reading = new Reading(reader, new TokenText(model, prompt), tell);
  const options = evaluateOptions(sampling, choice, generated, runtime.context.contextSize, () => reader.grammar);
  const steps = sequence.evaluateWithMetadata(last, {}, options);
  const ended = (): Outcome => ({
    finishReason: reader.calledTools ? "tool_calls" : "stop",
    completionTokens: generated.length,
  });
  // The model stands still from a token to the next evaluation: nothing is awaited.
  batching.enter();
  try {
    let upcoming = steps.next();
    for (;;) {
      if (reading.hasUnread) {
        try {
          await Promise.race([batching.underWay, upcoming]);
        } finally {
          // Holds also where there will be no next token: this one is the client's.
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
      // Somebody waits for the first text; what follows can be read while the model works on the next token.
      if (reading.begun && !reader.steers && !full && reading.told === undefined && batching.pause === undefined) {
        upcoming = steps.next();
        continue;
      }
      reading.read();
      if (reader.ended) return ended();
      if (full) break;
      if (reading.told !== undefined || batching.pause !== undefined) await standBy(batching, reading, signal);
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

/** Makes text of tokens, and tells what the reader makes of the text. */
class Reading {
  readonly #reader: ReplyReader<LlamaGrammarEvaluationState>;
  readonly #text: TokenText;
  readonly #tell: Tell;
  #unread: Token | undefined;
  /** Whether anything was told. */
  begun = false;
  /** Present where the client has to read before more is generated; whoever has waited for it takes it away. */
  told: Promise<void> | undefined;

  constructor(reader: ReplyReader<LlamaGrammarEvaluationState>, text: TokenText, tell: Tell) {
    this.#reader = reader;
    this.#text = text;
    this.#tell = tell;
  }

  get hasUnread(): boolean {
    return this.#unread !== undefined;
  }

  /** The next token, which `read` reads. */
  take(token: Token): void {
    this.#unread = token;
  }

  read(): void {
    if (this.#unread === undefined) return;
    const events = this.#reader.read(this.#text.push(this.#unread));
    this.#unread = undefined;
    if (events.length === 0) return;
    this.begun = true;
    // A client that has room again has read what it was told before, too.
    this.told = this.#tell(events) ?? this.told;
  }

  /** The reply is over: tells what was held back. */
  finish(): void {
    this.#tell([...this.#reader.read(this.#text.flush()), ...this.#reader.finish()]);
  }
}

/** Waits for the client to read, and for its turn, without keeping the other generations waiting. */
async function standBy(batching: Batching, reading: Reading, signal: AbortSignal): Promise<void> {
  batching.leave();
  try {
    await reading.told;
    reading.told = undefined;
    await batching.pause;
  } finally {
    batching.enter();
  }
  signal.throwIfAborted();
}

/** A forbidden token is only chosen when the grammar leaves no other. */
function nothingAllowed(): Error {
  return invalid(
    "logit_bias forbids every token with which the answer could go on as response_format or the tools demand. " +
      "Forbid fewer tokens.",
  );
}

/**
 * Brings the sequence to the end of the prompt but for a last portion, which it returns: what the sequence already
 * holds of the prompt is kept. The counts of a request never depend on what was kept.
 */
async function evaluatePrompt(
  sequence: LlamaContextSequence,
  runtime: Runtime,
  prompt: Token[],
  signal: AbortSignal,
): Promise<Token[]> {
  const { batching } = runtime;
  // The last token has to be evaluated anew in any case: its result is the first token of the reply.
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
