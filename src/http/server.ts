// The HTTP server: routes every request by one table, authenticates, answers errors, writes one log line for each.
import type { BlockList } from "node:net";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Log, LogFields } from "../domain/log.ts";
import { keyOf, type Principal } from "../domain/principal.ts";
import type { Authenticator } from "../policy/authenticate.ts";
import { requireScope } from "../policy/authorize.ts";
import { clientAddress, isLocalRequest } from "./client-address.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { errorResponse, errorTable, toGatewayError } from "./errors.ts";
import type { Exchange, Route } from "./route.ts";

export interface HttpServerOptions {
  hostname: string;
  /** 0 picks a free one. */
  port: number;
  routes: readonly Route[];
  authenticator: Authenticator;
  trustedProxies: BlockList;
  /** Allowed origins; read for every request, as a reload may change them. */
  corsOrigins(): readonly string[];
  log: Log;
  clock: Clock;
}

type BunRequest = Request & { params?: Record<string, string> };
type Handler = (req: BunRequest, server: Bun.Server<undefined>) => Promise<Response>;

/** Headers and body must keep arriving at this pace; an answer may be silent as long as it likes. */
const idleTimeoutSeconds = 30;
const clientClosedRequest = 499;

export function startHttpServer(options: HttpServerOptions): Bun.Server<undefined> {
  const table: Record<string, Record<string, Handler>> = {};
  for (const route of options.routes) {
    table[route.path] ??= {};
    (table[route.path] as Record<string, Handler>)[route.method] = (req, server) => serve(req, server, route, options);
  }
  return Bun.serve({
    hostname: options.hostname,
    port: options.port,
    idleTimeout: idleTimeoutSeconds,
    // The limit of the configuration is enforced while reading, with an answer that says so.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // Without this, Bun shares the port with any other process that asks for it.
    reusePort: false,
    routes: table as never,
    fetch: (req, server) => serve(req, server, undefined, options),
    error: (error) => errorResponse(toGatewayError(error), new Headers()),
  });
}

async function serve(
  req: BunRequest,
  server: Bun.Server<undefined>,
  route: Route | undefined,
  options: HttpServerOptions,
): Promise<Response> {
  const startedMs = options.clock.monotonicMs();
  const requestId = `req_${Bun.randomUUIDv7()}`;
  const peer = server.requestIP(req)?.address ?? "";
  const client = clientAddress(req, peer, options.trustedProxies);
  const headers: Record<string, string> = { "x-request-id": requestId, ...corsHeaders(req, options.corsOrigins()) };
  const fields: Record<string, LogFields[string]> = {
    id: requestId,
    client,
    method: req.method,
    route: route?.path ?? "none",
  };
  let status = 200;
  const write = (error?: GatewayError) => {
    fields["status"] = status;
    fields["ms"] = Math.round((options.clock.monotonicMs() - startedMs) * 10) / 10;
    if (error) {
      fields["code"] = error.code;
      if (error.detail !== undefined) fields["detail"] = error.detail;
    }
    if (error?.code === "internal_error") options.log.error("request", fields);
    else options.log.info("request", fields);
  };
  let deferred = false;
  const exchange: Exchange = {
    req,
    params: routeParams(req, route),
    requestId,
    clientAddress: client,
    answerHeaders: headers,
    bodyRead: () => server.timeout(req, 0),
    note: (more) => void Object.assign(fields, more),
    defer() {
      deferred = true;
      return {
        finish: (error) => {
          server.timeout(req, idleTimeoutSeconds);
          queueMicrotask(() => write(error));
        },
      };
    },
  };
  try {
    const response = preflight(req, options.corsOrigins()) ?? (await handle(exchange, route, peer, fields, options));
    status = response.status;
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    if (route?.access !== "public") {
      // What one credential may see is not for others, also where it came in a header that caches do not know.
      if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
      response.headers.set("openai-processing-ms", String(Math.round(options.clock.monotonicMs() - startedMs)));
    }
    // Without this, Bun reads the rest of a body that nobody asked for.
    if (req.body && !req.bodyUsed) response.headers.set("connection", "close");
    if (!deferred) {
      // `bodyRead` lifted the limit for the connection, which may wait for its next request from here on.
      server.timeout(req, idleTimeoutSeconds);
      write();
    }
    return response;
  } catch (thrown) {
    if (req.signal.aborted) {
      // Nobody is there to be answered; the status, nginx's own, is for the log.
      status = clientClosedRequest;
      if (!deferred) write();
      return new Response(null, { status });
    }
    const error = toGatewayError(thrown);
    status = errorTable[error.code].status;
    if (error.code === "method_not_allowed") headers["allow"] = allowedMethods(pathOf(req), options.routes).join(", ");
    // Without this, Bun reads the rest of a refused upload.
    if (req.body && !req.bodyUsed) headers["connection"] = "close";
    if (error.code === "request_too_large") headers["connection"] = "close";
    if (route && route.access !== "public") headers["cache-control"] ??= "no-store";
    if (!deferred) write(error);
    return errorResponse(error, new Headers(headers));
  }
}

async function handle(
  exchange: Exchange,
  route: Route | undefined,
  peer: string,
  fields: Record<string, LogFields[string]>,
  options: HttpServerOptions,
): Promise<Response> {
  if (!route) throw unrouted(exchange.req, options.routes);
  if (route.access === "public") return route.handle(exchange);
  const { req } = exchange;
  const principal: Principal = await options.authenticator.authenticate({
    authorization: req.headers.get("authorization"),
    apiKey: req.headers.get("x-api-key"),
    clientAddress: exchange.clientAddress,
    requestId: exchange.requestId,
    isLocal: () => isLocalRequest(req, peer),
  });
  fields["key"] = keyOf(principal).id;
  requireScope(principal, route.access);
  return route.handle(exchange, principal);
}

/** The rest of a wildcard path comes from the URL as the router saw it; percent-escapes in a model id are decoded. */
function routeParams(req: BunRequest, route: Route | undefined): Record<string, string> {
  if (!route?.path.endsWith("*")) return req.params ?? {};
  const rest = pathOf(req).slice(route.path.length - 1);
  try {
    return { "*": decodeURIComponent(rest) };
  } catch {
    return { "*": rest };
  }
}

/** The path of the request; `new URL` would throw on a junk Host. */
function pathOf(req: Request): string {
  // With a Host that is no host name, Bun gives the path alone.
  const start = req.url.startsWith("/") ? 0 : req.url.indexOf("/", req.url.indexOf("://") + 3);
  if (start < 0) return "/";
  const end = req.url.slice(start).search(/[?#]/);
  return end < 0 ? req.url.slice(start) : req.url.slice(start, start + end);
}

function allowedMethods(path: string, routes: readonly Route[]): string[] {
  const matches = routes.filter((route) => matchesPath(route.path, path));
  return [...new Set(matches.flatMap((route) => (route.method === "GET" ? ["GET", "HEAD"] : [route.method])))];
}

/** Whether a path is one that the router would match by this pattern: `:name` is one segment, `*` the rest. */
function matchesPath(pattern: string, path: string): boolean {
  if (pattern.endsWith("*")) return path.startsWith(pattern.slice(0, -1)) && path.length >= pattern.length;
  const wanted = pattern.split("/");
  const found = path.split("/");
  return (
    wanted.length === found.length &&
    wanted.every((segment, index) => (segment.startsWith(":") ? found[index] !== "" : segment === found[index]))
  );
}

function unrouted(req: Request, routes: readonly Route[]): GatewayError {
  const path = pathOf(req);
  const shown = path.length > 100 ? `${path.slice(0, 100)}…` : path;
  const allowed = allowedMethods(path, routes);
  // The router matched the path as it was sent; `req.url` shows it with dots and escapes resolved.
  if (allowed.includes(req.method)) {
    return new GatewayError(
      "not_found",
      `There is no endpoint at the path as it was sent; ask for ${shown} itself. GET /docs lists the endpoints.`,
    );
  }
  if (allowed.length > 0) {
    return new GatewayError(
      "method_not_allowed",
      `${req.method} is not allowed on ${shown}; use ${allowed.join(" or ")}.`,
    );
  }
  const versioned = allowedMethods(`/v1${path}`, routes).length > 0;
  const hint = versioned ? ` Did you mean /v1${shown}? The base URL ends in /v1.` : " GET /docs lists the endpoints.";
  return new GatewayError("not_found", `There is no endpoint ${shown}.${hint}`);
}
