// Texts about guardrails that the command line shows.

/** The option of `headrace models add` and `headrace models set`. */
export const guardrailsOption = ["--guardrails <names>", "guardrails from headrace.yaml, in this order"] as const;

export function guardrailsLine(names: readonly string[]): string {
  return `guardrails: ${names.join(", ")}`;
}

/** Texts for the results of guardrails, shown in the list of a request's attempts. */
export const guardrailResults = {
  masked: "something was masked",
  blocked: "the answer was ended",
  noted: "something was noted",
} as const;
