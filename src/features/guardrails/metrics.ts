// Counts findings of guardrails, for Prometheus.
import type { Finding } from "../../inference/guarding.ts";
import { type Exposition, labelText } from "../../metrics/exposition.ts";

export class FindingCounts {
  /**
   * Counts by their labels. The number of label combinations is bounded, because only the operator names guardrails and
   * rules.
   */
  readonly #counts = new Map<string, number>();

  add({ guardrail, rule, side, action }: Omit<Finding, "count">): void {
    const labels = labelText({ guardrail, rule, side, action });
    this.#counts.set(labels, (this.#counts.get(labels) ?? 0) + 1);
  }

  write(out: Exposition): void {
    out.family("headrace_guardrail_findings_total", "counter", "Findings of guardrails in requests and answers.");
    for (const [labels, count] of this.#counts) out.sample(labels, count);
  }
}
