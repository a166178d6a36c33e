// Texts about guardrails for the command line.

/** The option of `headrace models add` and `headrace models set`. */
export const guardrailsOption = ["--guardrails <names>", "guardrails from headrace.yaml, in this order"] as const;

export function guardrailsLine(names: readonly string[]): string {
  return `guardrails: ${names.join(", ")}`;
}

/** Texts for guardrail results in the attempt log of a request. */
export const guardrailResults = {
  masked: "something was masked",
  blocked: "the answer was ended",
  noted: "something was noted",
} as const;
