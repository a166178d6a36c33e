// Counts calls of MCP servers by server, method and outcome, and measures their duration.
import type { ToolObserver } from "../domain/tools/tool-use.ts";
import { BoundedSeries } from "./bounded-series.ts";
import { type Exposition, labelText } from "./exposition.ts";
import { Buckets, Histogram } from "./histogram.ts";

/** Maximum servers with separate series. */
const maxServers = 200;
/** Other methods are counted together, because clients may send any method. */
const knownMethods: ReadonlySet<string> = new Set([
  ...(["tools/call", "tools/list", "prompts/get", "prompts/list", "completion/complete"] as const),
  ...(["resources/read", "resources/list", "resources/templates/list", "resources/subscribe"] as const),
]);
const callTimes = new Buckets([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]);

interface ServerSeries {
  label: string;
  calls: Map<string, number>;
  durations: Histogram;
}

export class ToolTraffic implements ToolObserver {
  readonly #servers = new BoundedSeries<ServerSeries>({
    most: maxServers,
    make: (label) => ({ label, calls: new Map(), durations: new Histogram(callTimes) }),
    // Never drop a series: operators name the servers, so there are few.
    isGone: () => false,
  });

  toolEnded({ server, method, outcome, durationMs }: Parameters<ToolObserver["toolEnded"]>[0]): void {
    const series = this.#servers.of(server);
    const known = knownMethods.has(method) ? method : "other";
    const labels = labelText({ server: series.label, method: known, outcome });
    series.calls.set(labels, (series.calls.get(labels) ?? 0) + 1);
    if (outcome === "refused") return;
    series.durations.observe(durationMs);
  }

  write(out: Exposition): void {
    const all = [...this.#servers.all()];
    const calls = "headrace_tool_calls_total";
    out.family(calls, "counter", "Calls of MCP servers, by outcome. `tool_error`: the tool reported an error.");
    for (const series of all) for (const [labels, count] of series.calls) out.sample(labels, count);
    const name = "headrace_tool_call_duration_seconds";
    out.family(name, "histogram", "Time from a call to the end of its result, including the wait for a slot.");
    for (const { label, durations } of all) out.lines(durations.lines(name, labelText({ server: label })));
  }
}
