// The endpoint that lists guardrails for operators.
import { adminEndpoints } from "../../http/api/admin/admin-endpoint.ts";
import type { EndpointDeps } from "../../http/api/endpoint.ts";
import { wholeListOf } from "../../http/api/list.ts";
import type { ScopedRoute } from "../../http/exchange/route.ts";
import type { GuardrailSettings } from "./model.ts";
import { guardrailShape, guardrailToWire } from "./wire.ts";

export interface GuardrailRouteDeps extends EndpointDeps {
  /** Returns the guardrails of the current configuration. */
  guardrailSettings(): readonly GuardrailSettings[];
}

const guardrailList = wholeListOf(guardrailShape, "GuardrailList");

const endpoint = adminEndpoints<GuardrailRouteDeps>();

export function guardrailRoutes(deps: GuardrailRouteDeps): ScopedRoute[] {
  return [list(deps)];
}

const list = endpoint("GET", "/v1/admin/guardrails", {
  operationId: "listGuardrails",
  summary: "List the guardrails of headrace.yaml, for the `policies` of models",
  response: { description: "The guardrails, in the order of the file.", json: guardrailList },
  answer: ({ deps }) => ({ object: "list", data: deps.guardrailSettings().map(guardrailToWire) }),
});
