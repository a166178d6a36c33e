// What the operators' endpoints have in common: their scope, and who may ask.
import type { Clock } from "../../../base/clock.ts";
import type { Principal } from "../../../domain/principal.ts";
import { requireOperator } from "../../../policy/manage/operator.ts";
import type { BodyLimits } from "../../content/body.ts";
import type { Exchange, RouteDoc, ScopedRoute } from "../../exchange/route.ts";

export interface AdminBaseDeps {
  clock: Clock;
  /** Read for every request: a reload may change them. */
  requestLimits(): BodyLimits;
}

export type AdminDoc = Omit<RouteDoc, "tag">;

/** Binds the endpoints of one noun to what they need. */
export function adminRouter<Deps>(deps: Deps) {
  return (
    method: ScopedRoute["method"],
    path: string,
    doc: AdminDoc,
    handle: (exchange: Exchange, principal: Principal, deps: Deps) => Response | Promise<Response>,
  ): ScopedRoute => ({
    method,
    path,
    access: "admin:manage",
    doc: { ...doc, tag: "Administration", errors: [...(doc.errors ?? []), "permission_denied"] },
    handle(exchange, principal) {
      requireOperator(principal);
      return handle(exchange, principal, deps);
    },
  });
}
