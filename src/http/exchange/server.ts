// The HTTP API: routes every request by one table, authenticates, answers errors, writes one log line for each.
import type { BlockList } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { Log, RequestLogSettings } from "../../base/log.ts";
import type { Observer } from "../../domain/usage/observer.ts";
import type { Tracer } from "../../domain/usage/trace.ts";
import type { HeaderFields, IncomingRequest, Reply } from "../../http1/message.ts";
import { type Http1Server, startHttp1Server } from "../../http1/server/server.ts";
import type { Http1Limits } from "../../http1/server/server-limits.ts";
import type { AddressThrottle } from "../../policy/address-throttle.ts";
import type { Authenticator } from "../../policy/credentials/authenticate.ts";
import type { OpenRequests } from "../../policy/open-requests.ts";
import { contentTypeOptions } from "./browser-headers.ts";
import { errorAnswer } from "./errors.ts";
import { HttpExchange } from "./exchange.ts";
import type { Locality } from "./locality.ts";
import { newRequestId } from "./request-id.ts";
import type { Route } from "./route.ts";
import { RouteTable } from "./route-table.ts";
import type { SessionPrincipals } from "./session-principal.ts";

export interface HttpServerOptions {
  hostname: string;
  /** 0 picks a free one. */
  port: number;
  routes: readonly Route[];
  authenticator: Authenticator;
  /** People at browsers. */
  sessions: Pick<SessionPrincipals, "applies" | "find">;
  /** What clients are given, with `/v1`; each 401 tells the metadata of this resource (RFC 9728, 5.1). */
  baseUrl(): string;
  openRequests: Pick<OpenRequests, "enter">;
  /** Those left out have their defaults. */
  limits?: Partial<Http1Limits>;
  trustedProxies: BlockList;
  locality: Locality;
  /** Under which browsers reach the server; left out: on this machine alone. */
  publicUrl?: string | undefined;
  /** Of who needs no credential. */
  addressThrottle: Pick<AddressThrottle, "take">;
  /** Whether requests are refused as the server is about to end; left out: never. */
  isRefusing?: () => boolean;
  /** Allowed origins; read for every request, as a reload may change them. */
  corsOrigins(): readonly string[];
  log: Log;
  /** Which requests get a line there; likewise. Left out: all. */
  requestLog?: () => RequestLogSettings;
  clock: Clock;
  /** Told of requests that are authenticated. */
  tracer?: Tracer | undefined;
  /** Told of the end of each exchange. */
  observer?: Pick<Observer, "httpEnded"> | undefined;
}

export function startHttpServer(options: HttpServerOptions): Http1Server {
  const table = new RouteTable(options.routes);
  return startHttp1Server({
    hostname: options.hostname,
    port: options.port,
    limits: options.limits ?? {},
    onRequest: (req: IncomingRequest, reply: Reply) => new HttpExchange(req, reply, table, options).serve(),
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
