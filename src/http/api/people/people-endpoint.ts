// Declares endpoints for signed-in people, with their access checks.
import { requireScope } from "../../../policy/authorize.ts";
import { type EndpointDeps, personEndpoints } from "../endpoint.ts";

/** Declares endpoints for every signed-in person. */
export function peopleEndpoints<Deps extends EndpointDeps>() {
  return personEndpoints<Deps>({ tag: "People", errors: [], admit: (principal) => principal });
}

/**
 * Declares endpoints that need the scope `keys:manage`. Browser sessions have this scope, but restricted logins do not.
 */
export function managingEndpoints<Deps extends EndpointDeps>() {
  return personEndpoints<Deps>({
    tag: "People",
    errors: ["insufficient_scope"],
    admit(principal) {
      requireScope(principal, "keys:manage");
      return principal;
    },
  });
}
