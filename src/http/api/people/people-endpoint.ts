// What the endpoints for people have in common: who may ask.
import { requireScope } from "../../../policy/authorize.ts";
import { type EndpointDeps, personEndpoints } from "../endpoint.ts";

/** Endpoints for everybody who is signed in. */
export function peopleEndpoints<Deps extends EndpointDeps>() {
  return personEndpoints<Deps>({ tag: "People", errors: [], admit: (principal) => principal });
}

/** Endpoints for what a login that was allowed less than the person must not do: they need `keys:manage`, as all sessions have it. */
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
