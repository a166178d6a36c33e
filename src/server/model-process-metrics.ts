// The metrics of commands that serve models: state, memory, starts and failures.

import type { CommandEngine } from "../engines/commands/command-engine.ts";
import { isMemory } from "../engines/memory/amounts.ts";
import type { MemoryBudget } from "../engines/memory/budget.ts";
import { type Exposition, labelText } from "../metrics/exposition.ts";

/** Writes the metrics. Without commands, writes only the metric families, without samples. */
export function writeModelProcesses(
  out: Exposition,
  engines: readonly CommandEngine[],
  budget: Pick<MemoryBudget, "view">,
): void {
  const all = engines.map((engine) => ({ upstream: engine.name, ...engine.figures() }));
  out.family(
    "headrace_model_state",
    "gauge",
    "Always 1. The label `state` is the state of a command that serves models.",
  );
  for (const { upstream, state } of all) out.sample(labelText({ upstream, state }), 1);
  out.family("headrace_model_memory_bytes", "gauge", "Memory reserved for a command, or needed to start it, by pool.");
  for (const { upstream, memory } of all) {
    for (const [pool, bytes] of Object.entries(memory)) {
      if (isMemory(pool)) out.sample(labelText({ upstream, pool }), bytes);
    }
  }
  const { pools } = budget.view();
  out.family("headrace_model_memory_used_bytes", "gauge", "Memory reserved for all commands, by pool.");
  for (const { pool, used } of pools) out.sample(labelText({ pool }), used);
  out.family("headrace_model_memory_limit_bytes", "gauge", "Memory limit of all commands together, by pool.");
  for (const { pool, total } of pools) out.sample(labelText({ pool }), total);
  const counters = [
    ["headrace_model_starts_total", "Starts of a command.", "starts"],
    ["headrace_model_evictions_total", "Times that a command was stopped or put to sleep to make room.", "evictions"],
    ["headrace_model_failures_total", "Times that a command ended unexpectedly or did not become ready.", "failures"],
    ["headrace_model_load_seconds_total", "Seconds spent on starting a command until it was ready.", "loadSeconds"],
  ] as const;
  for (const [name, help, member] of counters) {
    out.family(name, "counter", help);
    for (const figures of all) out.sample(labelText({ upstream: figures.upstream }), figures[member]);
  }
}
