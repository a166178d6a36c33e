// The mock upstream as the benchmark sees it: its address, its process, its counters.
import { linesOf, startScript, stop } from "./child.ts";
import type { UpstreamCounters } from "./mock-upstream.ts";

export interface MockUpstream {
  port: number;
  pid: number;
  counters(): Promise<UpstreamCounters>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startMock(): Promise<MockUpstream> {
  const child = startScript(new URL("./mock-upstream.ts", import.meta.url));
  const { value } = await linesOf(child).next();
  if (typeof value !== "string") throw new Error("The mock upstream did not start.");
  const { port } = JSON.parse(value) as { port: number };
  return {
    port,
    pid: child.pid,
    async counters() {
      const response = await fetch(`http://127.0.0.1:${port}/counters`);
      return (await response.json()) as UpstreamCounters;
    },
    [Symbol.asyncDispose]: () => stop(child),
  };
}
