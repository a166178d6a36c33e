// The JSON of a guardrail in the API.
import { z } from "zod";
import { type GuardrailSettings, guardrailActions, guardrailKinds, guardrailSides } from "./model.ts";

export const guardrailShape = z
  .object({
    object: z.literal("guardrail"),
    name: z.string().describe("Name for the `policies` of models."),
    kind: z.enum(guardrailKinds),
    sides: z.array(z.enum(guardrailSides)),
    action: z.enum(guardrailActions),
  })
  .meta({ id: "Guardrail", description: "A guardrail of headrace.yaml, without its address and credentials." });
type GuardrailWire = z.infer<typeof guardrailShape>;

export function guardrailToWire({ name, kind, sides, action }: GuardrailSettings): GuardrailWire {
  return { object: "guardrail", name, kind, sides: [...sides], action };
}
