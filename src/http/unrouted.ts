// What a request gets for which there is no route: another method, or where the endpoint may be.
import { GatewayError } from "../domain/errors.ts";
import type { IncomingRequest } from "../http1/message.ts";
import { pathOf, type RouteTable } from "./route-table.ts";

export function unrouted(req: Pick<IncomingRequest, "method" | "target">, table: RouteTable): GatewayError {
  const path = pathOf(req.target);
  const shown = path.length > 100 ? `${path.slice(0, 100)}…` : path;
  const allowed = table.allowed(path);
  if (allowed.length > 0) {
    return new GatewayError(
      "method_not_allowed",
      `${req.method} is not allowed on ${shown}; use ${allowed.join(" or ")}.`,
    );
  }
  const versioned = table.allowed(`/v1${path}`).length > 0;
  const hint = versioned ? ` Did you mean /v1${shown}? The base URL ends in /v1.` : " GET /docs lists the endpoints.";
  return new GatewayError("not_found", `There is no endpoint ${shown}.${hint}`);
}
