// Runs the generations of one request in parallel, as far as the context has free sequences.
import { type Generation, generate, type Outcome, type Report } from "./generate.ts";
import type { Runtime } from "./runtime.ts";

/** Receives the events of each choice, and how it ended. */
export interface ChoiceListener {
  report: (choice: number, ...values: Parameters<Report>) => ReturnType<Report>;
  ended: (choice: number, outcome: Outcome) => void;
}

/**
 * Runs the generations. Resolves once all have ended. If one fails, the others are aborted and the promise
 * rejects with its error.
 */
export async function runChoices(
  runtime: Runtime,
  choices: readonly Generation[],
  signal: AbortSignal,
  { report, ended }: ChoiceListener,
): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  let failure: { error: unknown } | undefined;
  await Promise.all(
    choices.map(async (generation) => {
      const { choice } = generation;
      try {
        ended(choice, await generate(runtime, generation, either, (events) => report(choice, events)));
      } catch (error) {
        failure ??= { error };
        stop.abort();
      }
    }),
  );
  if (failure !== undefined) throw failure.error;
}
