// The mock upstream as the benchmark sees it: its address, its process, its counters.
import { linesOf, startScript, stop } from "./child.ts";
import type { MockCounters } from "./mock-upstream.ts";

export interface MockUpstream {
  port: number;
  pid: number;
  counters(): Promise<MockCounters>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `port` 0: any. `prefix`: what its command begins with, as `placement.ts` has it. */
export async function startMock({ port = 0, prefix = [] as readonly string[] } = {}): Promise<MockUpstream> {
  const child = startScript(new URL("./mock-upstream.ts", import.meta.url), { prefix, args: [String(port)] });
  const { value } = await linesOf(child).next();
  if (typeof value !== "string") throw new Error(`The mock upstream did not start on port ${port}.`);
  const started = JSON.parse(value) as { port: number };
  return {
    port: started.port,
    pid: child.pid,
    async counters() {
      const response = await fetch(`http://127.0.0.1:${started.port}/counters`);
      return (await response.json()) as MockCounters;
    },
    [Symbol.asyncDispose]: () => stop(child),
  };
}
