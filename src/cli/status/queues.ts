// Shows the queues of models: the waiting requests by priority, and the estimated wait of a new request.
import { z } from "zod";
import { priorities } from "../../domain/models/policies/priority.ts";
import { formatCount } from "../terminal/figures.ts";
import { printable } from "../terminal/terminal.ts";

const byPriority = z.record(z.string(), z.number().nullable());

/** A model of `GET /v1/model-status`. Older servers report only how many requests wait. */
export const modelQueues = z.object({
  id: z.string(),
  deployments: z.array(
    z.object({
      upstream: z.string(),
      waiting: z.number(),
      waiting_by_priority: byPriority.nullish(),
      expected_wait_ms: byPriority.nullish(),
    }),
  ),
});

export interface ModelQueue {
  model: string;
  upstream: string;
  waiting: number;
  waiting_by_priority: Record<string, number | null>;
  expected_wait_ms: Record<string, number | null>;
}

const shownQueues = 8;

export function queuesOf({ id, deployments }: z.infer<typeof modelQueues>): ModelQueue[] {
  return deployments.map(({ upstream, waiting, waiting_by_priority: counts, expected_wait_ms: waits }) => ({
    ...{ model: id, upstream, waiting },
    waiting_by_priority: counts ?? {},
    expected_wait_ms: waits ?? {},
  }));
}

/** Returns the models for which requests wait, longest queue first. */
export function queueFacts(queues: readonly ModelQueue[]): [name: string, value: string][] {
  const busy = queues.filter(({ waiting }) => waiting > 0).sort((a, b) => b.waiting - a.waiting);
  if (busy.length === 0) return [["Waiting", "none"]];
  const facts = busy
    .slice(0, shownQueues)
    .map((queue, index): [string, string] => [index === 0 ? "Waiting" : "", queueText(queue)]);
  const others = busy.length - facts.length;
  return others > 0 ? [...facts, ["", `and for ${others} more`]] : facts;
}

/** Returns text such as `gpt-6 at vllm: 12 (2 high, about 1 s; 10 normal, about 9 s)`. */
function queueText({ model, upstream, waiting, waiting_by_priority: counts, expected_wait_ms: waits }: ModelQueue) {
  const lines = [...priorities].reverse().flatMap((priority) => {
    const count = counts[priority] ?? 0;
    const wait = waits[priority];
    const expected = wait == null ? "" : `, about ${Math.max(1, Math.round(wait / 1000))} s`;
    return count > 0 ? [`${formatCount(count)} ${priority}${expected}`] : [];
  });
  const details = lines.length > 0 ? ` (${lines.join("; ")})` : "";
  return `${printable(model)} at ${printable(upstream)}: ${formatCount(waiting)}${details}`;
}
