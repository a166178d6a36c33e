// The metrics of commands that serve models: what is loaded, with how much memory, and how often that changed.

import type { CommandEngine } from "../engines/commands/command-engine.ts";
import { isMemory } from "../engines/memory/amounts.ts";
import type { MemoryBudget } from "../engines/memory/budget.ts";
import { type Exposition, labelText } from "../metrics/exposition.ts";

/** Where there are no commands, these metrics have no samples. */
export function writeModelProcesses(
  out: Exposition,
  engines: readonly CommandEngine[],
  budget: Pick<MemoryBudget, "view">,
): void {
  const all = engines.map((engine) => ({ upstream: engine.name, ...engine.figures() }));
  out.family("headrace_model_state", "gauge", "Always 1: the state of a command that serves models.");
  for (const { upstream, state } of all) out.sample(labelText({ upstream, state }), 1);
  out.family("headrace_model_memory_bytes", "gauge", "What is set aside for a command, or would be, by pool.");
  for (const { upstream, memory } of all) {
    for (const [pool, bytes] of Object.entries(memory)) {
      if (isMemory(pool)) out.sample(labelText({ upstream, pool }), bytes);
    }
  }
  const { pools } = budget.view();
  out.family("headrace_model_memory_used_bytes", "gauge", "What is set aside for all commands, by pool.");
  for (const { pool, used } of pools) out.sample(labelText({ pool }), used);
  out.family("headrace_model_memory_limit_bytes", "gauge", "What they may have together, by pool.");
  for (const { pool, total } of pools) out.sample(labelText({ pool }), total);
  const counters = [
    ["headrace_model_starts_total", "Starts of a command.", "starts"],
    ["headrace_model_evictions_total", "Times that it was stopped, or put to sleep, for others.", "evictions"],
    ["headrace_model_failures_total", "Times that it ended by itself, or did not become ready.", "failures"],
    ["headrace_model_load_seconds_total", "Seconds that its loading took.", "loadSeconds"],
  ] as const;
  for (const [name, help, member] of counters) {
    out.family(name, "counter", help);
    for (const figures of all) out.sample(labelText({ upstream: figures.upstream }), figures[member]);
  }
}
