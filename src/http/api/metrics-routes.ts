// The endpoint for Prometheus. It is open to operators, and to the local machine of a development server.
import { invalidApiKey } from "../../base/invalid-api-key.ts";
import { keyOf } from "../../domain/principal.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import type { Authenticator } from "../../policy/credentials/authenticate.ts";
import { sameSecret } from "../../policy/credentials/opaque-token.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { apiKeyOf } from "../exchange/api-key-header.ts";
import type { Answer, Exchange, MachineRoute } from "../exchange/route.ts";

export interface MetricsRouteDeps {
  authenticator: Pick<Authenticator, "authenticate">;
  metrics: {
    /** A token that permits reading the metrics. Undefined if none is configured. */
    token: string | undefined;
    /** True if requests from the gateway's machine need no credential. */
    isOpenLocally: boolean;
    /** Returns the metrics from memory, without a query to the database. `accept` is the client's header. */
    read(accept: string): Promise<{ contentType: string; text: string }>;
  };
}

export function metricsRoutes(deps: MetricsRouteDeps): MachineRoute[] {
  return [
    {
      method: "GET",
      path: "/metrics",
      access: "machine",
      throttle: "monitor",
      handle: (exchange) => answer(exchange, deps),
    },
  ];
}

async function answer(exchange: Exchange, deps: MetricsRouteDeps): Promise<Answer> {
  await requireReader(exchange, deps);
  const { contentType, text } = await deps.metrics.read(exchange.req.headers.get("accept") ?? "");
  return { status: 200, headers: { "content-type": contentType, "cache-control": "no-store" }, body: text };
}

/**
 * Rejects if the caller may not read the metrics. If the request has a credential, the local machine gets no exception.
 */
async function requireReader(exchange: Exchange, { authenticator, metrics }: MetricsRouteDeps): Promise<void> {
  const { req, clientAddress, requestId } = exchange;
  const authorization = req.headers.get("authorization");
  const apiKey = apiKeyOf(req.headers);
  if (authorization === null && apiKey === null) {
    if (metrics.isOpenLocally && exchange.isLocal() && !isOfPage(req)) return;
    // A request without a credential gets this error without an audit event.
    throw invalidApiKey("missing");
  }
  const bearer = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  if (metrics.token !== undefined && bearer !== undefined && sameSecret(metrics.token, bearer)) return;
  const whyNotLocal = () => exchange.whyNotLocal();
  const principal = await authenticator.authenticate({ authorization, apiKey, clientAddress, requestId, whyNotLocal });
  exchange.line["key"] = keyOf(principal).id;
  requireOperator(principal);
}

/** Reports whether a web page sent the request. A page in a browser on this machine must not count as the machine. */
function isOfPage({ headers }: IncomingRequest): boolean {
  return headers.has("origin") || (headers.get("sec-fetch-site") ?? "none") !== "none";
}
