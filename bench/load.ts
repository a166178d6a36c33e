// The load generator as the benchmark sees it: one job at a time.
import { linesOf, startScript, stop } from "./child.ts";
import type { LoadJob, LoadResult } from "./load-generator.ts";

export interface LoadGenerator {
  run(job: LoadJob): Promise<LoadResult>;
  [Symbol.asyncDispose](): Promise<void>;
}

export function startLoadGenerator(): LoadGenerator {
  const child = startScript(new URL("./load-generator.ts", import.meta.url));
  const lines = linesOf(child);
  return {
    async run(job) {
      child.stdin.write(`${JSON.stringify(job)}\n`);
      await child.stdin.flush();
      const { value } = await lines.next();
      if (typeof value !== "string") throw new Error("The load generator ended in the middle of a measurement.");
      return JSON.parse(value) as LoadResult;
    },
    [Symbol.asyncDispose]: () => stop(child),
  };
}
