// The HTTP API server. It finds the route of a request, authenticates the caller, formats errors, and writes one log
// line.

import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { HeaderFields, PassableRequest, Reply } from "../../http1/message.ts";
import { type Http1Server, startHttp1Server, type TcpAddress, type UnixAddress } from "../../http1/server/server.ts";
import { contentTypeOptions } from "./browser-headers.ts";
import { errorAnswer } from "./errors.ts";
import { HttpExchange } from "./exchange.ts";
import type { Elsewhere } from "./handed-over.ts";
import { newRequestId } from "./request-id.ts";
import type { Route } from "./route.ts";
import { pathOf, RouteTable } from "./route-table.ts";
import type { HttpServerOptions } from "./server-options.ts";

export function startHttpServer(options: HttpServerOptions): Http1Server {
  const table = new RouteTable(options.routes);
  return startHttp1Server({
    ...addressOf(options),
    limits: options.limits ?? {},
    onRequest: onRequestOf(table, options),
    onMalformed: (fault) => malformedAnswer(fault, options),
    onFault: (error) => options.log.error("connection_failed", { detail: String(error) }),
  });
}

function addressOf(options: HttpServerOptions): TcpAddress | UnixAddress {
  if ("unix" in options) return { unix: options.unix };
  const { hostname, port, shared = false } = options;
  return { hostname, port, shared };
}

type OnRequest = (req: PassableRequest, reply: Reply) => void;

function onRequestOf(table: RouteTable, options: HttpServerOptions): OnRequest {
  const { elsewhere, otherRoutes } = options;
  if (elsewhere) return passing(elsewhere, table, options);
  return otherRoutes ? loadingOthers(otherRoutes, table, options) : serving(table, options);
}

function serving(table: RouteTable, options: HttpServerOptions): OnRequest {
  return (req, reply) => new HttpExchange(req, reply, table, options).serve();
}

/**
 * Handles requests, and loads the remaining routes at the first request that matches none so far. If loading fails, the
 * next such request tries again.
 */
function loadingOthers(
  others: () => Promise<readonly Route[]>,
  table: RouteTable,
  options: HttpServerOptions,
): OnRequest {
  const serve = serving(table, options);
  let areThere = false;
  let loading: Promise<void> | undefined;
  const load = async () => {
    try {
      table.add(await others());
      areThere = true;
    } finally {
      loading = undefined;
    }
  };
  return (req, reply) => {
    if (areThere || table.find(req.method, pathOf(req.target))) {
      serve(req, reply);
      return;
    }
    loading ??= load();
    loading.then(
      () => serve(req, reply),
      (error: unknown) => new HttpExchange(req, reply, table, options).fault(error),
    );
  };
}

/**
 * Handles requests that have a route here. Forwards all others to the other process, which also answers unknown paths.
 */
function passing(elsewhere: Elsewhere, table: RouteTable, options: HttpServerOptions): OnRequest {
  return (req, reply) => {
    if (table.find(req.method, pathOf(req.target))) new HttpExchange(req, reply, table, options).serve();
    else elsewhere.pass(req, reply);
  };
}

const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  413: "request_too_large",
  503: "service_unavailable",
};

/** Returns the answer to a request that is not valid HTTP, and logs the request. */
function malformedAnswer(
  { status, reason, peer }: { status: number; reason: string; peer: string },
  { log, observer }: Pick<HttpServerOptions, "log" | "observer">,
): { headers: HeaderFields; body: string } {
  const id = newRequestId();
  const code = codeOfStatus[status] ?? "invalid_request";
  const error = new GatewayError(code, reason, code === "service_unavailable" ? { retryAfterSeconds: 5 } : {});
  const { headers, body } = errorAnswer(error);
  log.info("request", { id, client: peer, route: "none", status, code, detail: "malformed" });
  observer?.httpEnded({ requestId: id, method: "", route: undefined, status, durationMs: 0 });
  const own = { "x-request-id": id, "x-content-type-options": contentTypeOptions, "cache-control": "no-store" };
  return { headers: { ...headers, ...own }, body: String(body) };
}
