// Guardrails on the wire, as operators see them.
import { z } from "zod";
import { guardrailActions, guardrailKinds, guardrailSides } from "../../domain/models/policies/guardrail.ts";

export const guardrailShape = z
  .object({
    object: z.literal("guardrail"),
    name: z.string().describe("By which `policies` of models name it."),
    kind: z.enum(guardrailKinds),
    sides: z.array(z.enum(guardrailSides)),
    action: z.enum(guardrailActions),
  })
  .meta({ id: "Guardrail", description: "One of headrace.yaml, but for where it asks, and with what." });
export type GuardrailWire = z.infer<typeof guardrailShape>;
