// Runs the generations of one request side by side, as far as there are sequences for them.
import { type Generation, generate, type Outcome } from "./generate.ts";
import type { ReplyEvent } from "./reply-reader.ts";
import type { Runtime } from "./runtime.ts";

export interface Progress {
  choice: number;
  events: readonly ReplyEvent[];
  /** Present once the choice is complete. */
  outcome: Outcome | undefined;
}

type Step = IteratorResult<ReplyEvent[], Outcome>;

/**
 * Yields what each choice tells as soon as it does. Each choice is at most one token ahead of the consumer, so that a
 * client that does not read makes the generation wait instead of filling the memory. Ends all choices when one fails
 * or the consumer leaves.
 */
export async function* runChoices(
  runtime: Runtime,
  choices: readonly Generation[],
  signal: AbortSignal,
): AsyncGenerator<Progress, void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const generators = choices.map((choice) => generate(runtime, choice, either));
  const arrived: { index: number; step: Step | undefined; error?: unknown }[] = [];
  let wake = () => {};
  const advance = (index: number) => {
    generators[index]?.next().then(
      (step) => {
        arrived.push({ index, step });
        wake();
      },
      (error: unknown) => {
        arrived.push({ index, step: undefined, error });
        wake();
      },
    );
  };
  try {
    for (const index of generators.keys()) advance(index);
    let running = generators.length;
    while (running > 0) {
      const next = arrived.shift();
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      const { index, step, error } = next;
      if (step === undefined) throw error;
      const choice = choices[index]?.choice ?? index;
      if (step.done === true) {
        running -= 1;
        yield { choice, events: [], outcome: step.value };
      } else {
        advance(index);
        yield { choice, events: step.value, outcome: undefined };
      }
    }
  } finally {
    stop.abort();
    await Promise.allSettled(generators.map((generator) => generator.return(undefined as never)));
  }
}
