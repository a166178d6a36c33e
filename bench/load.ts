// The load generator as the benchmark sees it: one job at a time.
import { linesOf, startScript, stop } from "./child.ts";
import type { LoadCommand, LoadJob, LoadResult } from "./load-generator.ts";

export interface LoadGenerator {
  pid: number;
  run(job: LoadJob): Promise<LoadResult>;
  /** Opens the job's connections, asks once on each, and keeps them: the result tells how many got a first event. */
  hold(job: LoadJob): Promise<number>;
  /** Closes what `hold` opened. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `prefix`: what its command begins with, as `placement.ts` has it. */
export function startLoadGenerator(prefix: readonly string[] = []): LoadGenerator {
  const child = startScript(new URL("./load-generator.ts", import.meta.url), { prefix });
  const lines = linesOf(child);
  const ask = async (command: LoadCommand): Promise<unknown> => {
    child.stdin.write(`${JSON.stringify(command)}\n`);
    await child.stdin.flush();
    const { value } = await lines.next();
    if (typeof value !== "string") throw new Error("The load generator ended in the middle of a measurement.");
    return JSON.parse(value);
  };
  return {
    pid: child.pid,
    run: async (job) => (await ask({ kind: "run", job })) as LoadResult,
    hold: async (job) => (await ask({ kind: "hold", job })) as number,
    release: async () => void (await ask({ kind: "release" })),
    [Symbol.asyncDispose]: () => stop(child),
  };
}
