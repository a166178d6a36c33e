// Runs the generations of one request side by side, as far as there are sequences for them.
import { type Generation, generate, type Outcome, type Tell } from "./generate.ts";
import type { Runtime } from "./runtime.ts";

/** Told of each choice what it tells, and how it ended. */
export interface ChoiceListener {
  told: (choice: number, ...told: Parameters<Tell>) => ReturnType<Tell>;
  ended: (choice: number, outcome: Outcome) => void;
}

/** Resolves when all have ended. When one fails the others end too, and its error is what this rejects with. */
export async function runChoices(
  runtime: Runtime,
  choices: readonly Generation[],
  signal: AbortSignal,
  { told, ended }: ChoiceListener,
): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  let failure: { error: unknown } | undefined;
  await Promise.all(
    choices.map(async (generation) => {
      const { choice } = generation;
      try {
        ended(choice, await generate(runtime, generation, either, (events) => told(choice, events)));
      } catch (error) {
        failure ??= { error };
        stop.abort();
      }
    }),
  );
  if (failure !== undefined) throw failure.error;
}
