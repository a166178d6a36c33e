// Shared parts of the operators' endpoints: their scope, and who may call them.
import { requireOperator } from "../../../policy/manage/operator.ts";
import { type EndpointDeps, scopedEndpoints } from "../endpoint.ts";

export function adminEndpoints<Deps extends EndpointDeps>() {
  return scopedEndpoints<Deps>("admin:manage", {
    tag: "Administration",
    errors: ["permission_denied"],
    admit: requireOperator,
  });
}
