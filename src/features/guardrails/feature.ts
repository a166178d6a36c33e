// Declares the guardrails feature. Its service is loaded once the configuration has a guardrail.
import type { Guardrails } from "../../inference/guarding.ts";
import type { Feature } from "../feature.ts";
import { FindingCounts } from "./metrics.ts";
import { missingGuardrail } from "./model.ts";

export const guardrailsFeature: Feature = {
  name: "guardrails",
  open({ ownCalls, current }) {
    const counts = new FindingCounts();
    let service: Guardrails | undefined;
    return {
      stages: {
        guardrails: {
          begin(names, call) {
            if (service) return service.begin(names, call);
            throw missingGuardrail(names[0] ?? "");
          },
        },
      },
      writeMetrics: (out) => counts.write(out),
      async prepare({ guardrails }) {
        if (service || guardrails.length === 0) return;
        const { ConfiguredGuardrails } = await import("./service.ts");
        service = new ConfiguredGuardrails({
          ownCalls,
          settings: () => current().guardrails,
          found: (finding) => counts.add(finding),
        });
      },
    };
  },
};
