// Shared parts of the endpoints for people: who may call them.
import { requireScope } from "../../../policy/authorize.ts";
import { type EndpointDeps, personEndpoints } from "../endpoint.ts";

/** Returns endpoints for every signed-in person. */
export function peopleEndpoints<Deps extends EndpointDeps>() {
  return personEndpoints<Deps>({ tag: "People", errors: [], admit: (principal) => principal });
}

/** Returns endpoints that a restricted login must not use: they need `keys:manage`, which all sessions have. */
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
