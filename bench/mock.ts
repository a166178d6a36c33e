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
export function startMock({ port = 0, prefix = [] as readonly string[] } = {}): Promise<MockUpstream> {
  return startCounting(new URL("./mock-upstream.ts", import.meta.url), { prefix, args: [String(port)] });
}

/** A script that prints its port, and tells what it was asked. */
export async function startCounting(
  script: URL,
  started: { prefix: readonly string[]; args?: readonly string[] },
): Promise<MockUpstream> {
  const child = startScript(script, started);
  const { value } = await linesOf(child).next();
  if (typeof value !== "string") throw new Error(`${script.pathname} did not start.`);
  const { port } = JSON.parse(value) as { port: number };
  return {
    port,
    pid: child.pid,
    async counters() {
      const response = await fetch(`http://127.0.0.1:${port}/counters`);
      return (await response.json()) as MockCounters;
    },
    [Symbol.asyncDispose]: () => stop(child),
  };
}
