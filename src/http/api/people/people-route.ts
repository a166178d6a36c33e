// What the endpoints for people have in common: who may ask.
import type { Clock } from "../../../base/clock.ts";
import { requireScope } from "../../../policy/authorize.ts";
import type { BodyLimits } from "../../content/body.ts";
import type { Exchange, PersonPrincipal, PersonRoute, RouteDoc } from "../../exchange/route.ts";

export interface PeopleBaseDeps {
  clock: Clock;
  /** Read for every request: a reload may change them. */
  requestLimits(): BodyLimits;
}

export type PeopleDoc = Omit<RouteDoc, "tag">;

type Handle<Deps> = (exchange: Exchange, principal: PersonPrincipal, deps: Deps) => Promise<Response>;

/** Binds the endpoints of one noun to what they need. */
export function peopleRouter<Deps>(deps: Deps) {
  return (method: PersonRoute["method"], path: string, doc: PeopleDoc, handle: Handle<Deps>): PersonRoute => ({
    method,
    path,
    access: "person",
    doc: { ...doc, tag: "People", errors: [...(doc.errors ?? []), "service_unavailable"] },
    handle: (exchange, principal) => handle(exchange, principal, deps),
  });
}

/** The same, for what a login that was allowed less than the person must not do: it needs `keys:manage`, as all sessions have it. */
export function managingRouter<Deps>(deps: Deps) {
  const route = peopleRouter(deps);
  return (method: PersonRoute["method"], path: string, doc: PeopleDoc, handle: Handle<Deps>): PersonRoute =>
    route(method, path, { ...doc, errors: [...(doc.errors ?? []), "insufficient_scope"] }, (exchange, principal) => {
      requireScope(principal, "keys:manage");
      return handle(exchange, principal, deps);
    });
}
