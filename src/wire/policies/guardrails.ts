// Guardrails on the wire, as operators see them.
import { z } from "zod";
import { guardrailActions, guardrailKinds, guardrailSides } from "../../domain/models/policies/guardrail.ts";

export const guardrailShape = z
  .object({
    object: z.literal("guardrail"),
    name: z.string().describe("Name for the `policies` of models."),
    kind: z.enum(guardrailKinds),
    sides: z.array(z.enum(guardrailSides)),
    action: z.enum(guardrailActions),
  })
  .meta({ id: "Guardrail", description: "A guardrail of headrace.yaml, without its address and credentials." });
export type GuardrailWire = z.infer<typeof guardrailShape>;
