// The HTTP API: routes every request by one table, authenticates, answers errors, writes one log line for each.

import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { HeaderFields, IncomingRequest, Reply } from "../../http1/message.ts";
import { type Http1Server, startHttp1Server } from "../../http1/server/server.ts";
import { contentTypeOptions } from "./browser-headers.ts";
import { errorAnswer } from "./errors.ts";
import { HttpExchange } from "./exchange.ts";
import { newRequestId } from "./request-id.ts";
import type { Route } from "./route.ts";
import { pathOf, RouteTable } from "./route-table.ts";
import type { HttpServerOptions } from "./server-options.ts";

export function startHttpServer(options: HttpServerOptions): Http1Server {
  const table = new RouteTable(options.routes);
  const exchangeOf = (req: IncomingRequest, reply: Reply) => new HttpExchange(req, reply, table, options);
  let loadOthers = options.otherRoutes;
  let loading: Promise<void> | undefined;
  const load = async (others: () => Promise<readonly Route[]>) => {
    try {
      table.add(await others());
      loadOthers = undefined;
    } finally {
      loading = undefined;
    }
  };
  return startHttp1Server({
    hostname: options.hostname,
    port: options.port,
    limits: options.limits ?? {},
    onRequest(req: IncomingRequest, reply: Reply) {
      if (!loadOthers || table.find(req.method, pathOf(req.target))) {
        exchangeOf(req, reply).serve();
        return;
      }
      loading ??= load(loadOthers);
      loading.then(
        () => exchangeOf(req, reply).serve(),
        (error: unknown) => exchangeOf(req, reply).fault(error),
      );
    },
    onMalformed: (fault) => malformedAnswer(fault, options),
    onFault: (error) => options.log.error("connection_failed", { detail: String(error) }),
  });
}

const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  413: "request_too_large",
  503: "service_unavailable",
};

/** What is no request gets the shape of every other error, and its line in the log. */
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
