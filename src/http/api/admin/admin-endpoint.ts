// Declares endpoints for operators, with their scope and access check.
import { requireOperator } from "../../../policy/manage/operator.ts";
import { type EndpointDeps, scopedEndpoints } from "../endpoint.ts";

export function adminEndpoints<Deps extends EndpointDeps>() {
  return scopedEndpoints<Deps>("admin:manage", {
    tag: "Administration",
    errors: ["permission_denied"],
    admit: requireOperator,
  });
}
