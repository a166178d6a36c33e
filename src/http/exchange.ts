// One request from its head to its answer: found in the table, authenticated, handled, answered, told in the log.
import type { ClientStream } from "../domain/client-stream.ts";
import { GatewayError } from "../domain/errors.ts";
import type { LogFields } from "../domain/log.ts";
import { keyOf, type Principal } from "../domain/principal.ts";
import type { RequestTrace, Tracer } from "../domain/trace.ts";
import type { ByteChannel } from "../http1/byte-channel.ts";
import type { IncomingRequest, Reply } from "../http1/message.ts";
import { requireScope } from "../policy/authorize.ts";
import { contentTypeOptions, pageHeaders, strictTransport } from "./browser-headers.ts";
import { clientAddress, isLocalRequest } from "./client-address.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { errorAnswer, toGatewayError } from "./errors.ts";
import { errorPage } from "./pages/error-page.ts";
import { requireStorable } from "./query.ts";
import { everyRequest, levelOfLine } from "./request-line.ts";
import {
  type Answer,
  type ApiRoute,
  type Exchange,
  type MachineRoute,
  type PageRoute,
  type PersonPrincipal,
  type PersonRoute,
  type PlainAnswer,
  type PublicRoute,
  type Route,
  restName,
  type ScopedRoute,
  type StreamedAnswer,
  type UpgradeAnswer,
} from "./route.ts";
import { type FoundRoute, pathOf, type RouteTable } from "./route-table.ts";
import type { HttpServerOptions } from "./server.ts";
import { unrouted } from "./unrouted.ts";

const clientClosedRequest = 499;

export class HttpExchange implements Exchange {
  readonly req: IncomingRequest;
  readonly requestId = `req_${Bun.randomUUIDv7()}`;
  readonly clientAddress: string;
  readonly answerHeaders: Record<string, string>;
  readonly params: Readonly<Record<string, string>>;
  readonly #reply: Reply;
  readonly #table: RouteTable;
  readonly #options: HttpServerOptions;
  readonly #found: FoundRoute | undefined;
  readonly #startedMs: number;
  readonly #isPage: boolean;
  readonly #fields: Record<string, LogFields[string]>;
  #trace: RequestTrace | undefined;
  #status = 200;
  #deferred = false;

  constructor(req: IncomingRequest, reply: Reply, table: RouteTable, options: HttpServerOptions) {
    this.#startedMs = options.clock.monotonicMs();
    this.req = req;
    this.#reply = reply;
    this.#table = table;
    this.#options = options;
    this.#found = table.find(req.method, pathOf(req.target));
    this.params = this.#found?.params ?? {};
    this.clientAddress = clientAddress(req, options.trustedProxies);
    // No page of another site has any business with ours (RFC 9700, 4.2.4).
    const isPage = this.#found ? this.#found.route.access === "page" : table.isPage(pathOf(req.target));
    this.answerHeaders = isPage ? {} : corsHeaders(req, options.corsOrigins());
    this.answerHeaders["x-request-id"] = this.requestId;
    this.answerHeaders["x-content-type-options"] = contentTypeOptions;
    this.#isPage = isPage;
    this.#fields = {
      id: this.requestId,
      client: this.clientAddress,
      method: req.method,
      route: this.#found?.route.path ?? "none",
    };
  }

  get trace(): RequestTrace | undefined {
    return this.#trace;
  }

  /** Never rejects. */
  async serve(): Promise<void> {
    try {
      const handled = this.#preflight() ?? this.#handle();
      const answer = handled instanceof Promise ? await handled : handled;
      if (answer instanceof Response) await this.#sendResponse(answer);
      else this.#send(answer);
      if (!this.#deferred) this.#write();
    } catch (thrown) {
      if (this.req.left.cancelled) {
        // Nobody is there to be answered; the status, nginx's own, is for the log.
        this.#status = clientClosedRequest;
        if (!this.#deferred) this.#write();
      } else {
        this.#fail(toGatewayError(thrown));
      }
    }
  }

  note(fields: LogFields): void {
    Object.assign(this.#fields, fields);
  }

  defer(): { finish(error?: GatewayError): void } {
    this.#deferred = true;
    return { finish: (error) => queueMicrotask(() => this.#write(error)) };
  }

  #preflight(): PlainAnswer | undefined {
    const { req } = this;
    if (req.method !== "OPTIONS") return undefined;
    return this.#table.isPage(pathOf(req.target)) ? undefined : preflight(req, this.#options.corsOrigins());
  }

  #handle(): Answer | Promise<Answer> {
    const route = this.#found?.route;
    if (!route) throw unrouted(this.req, this.#table);
    if (!isAuthenticated(route)) return this.#throttled(route) ?? route.handle(this);
    const principal = this.#authenticate();
    if (!(principal instanceof Promise)) return this.#authenticated(route, principal);
    return principal.then((found) => this.#authenticated(route, found));
  }

  #throttled(route: PublicRoute | PageRoute | MachineRoute): Answer | undefined {
    if (route.throttle === "signed") return undefined;
    const refusal = this.#options.addressThrottle.take(route.throttle, this.clientAddress);
    if (!refusal) return undefined;
    if (route.access === "public" && route.refuse) return route.refuse(this, refusal);
    throw refusal;
  }

  #authenticate(): Principal | Promise<Principal> {
    const { req } = this;
    const { authenticator, sessions } = this.#options;
    if (sessions.applies(req)) return sessions.find(this);
    return authenticator.authenticate({
      authorization: req.headers.get("authorization"),
      apiKey: req.headers.get("x-api-key"),
      clientAddress: this.clientAddress,
      requestId: this.requestId,
      isLocal: () => isLocalRequest(req),
    });
  }

  #authenticated(route: ScopedRoute | PersonRoute, principal: Principal): Answer | Promise<Answer> {
    const keyId = keyOf(principal).id;
    this.#fields["key"] = keyId;
    if (this.#options.tracer) this.#beginTrace(this.#options.tracer, route.path, keyId);
    const place = this.#options.openRequests.enter(principal);
    this.req.onOver(() => place.release());
    if (route.access === "person") {
      const person = requirePerson(principal);
      this.#requireStorableParams(route);
      return route.handle(this, person);
    }
    requireScope(principal, route.access);
    this.#requireStorableParams(route);
    return route.handle(this, principal);
  }

  #requireStorableParams(route: ApiRoute): void {
    for (const name in this.params) {
      requireStorable(name === "*" ? restName(route) : name, this.params[name] ?? "");
    }
  }

  #beginTrace(tracer: Tracer, route: string, keyId: string): void {
    const { requestId, req } = this;
    const ageMs = this.#options.clock.monotonicMs() - this.#startedMs;
    this.#trace = tracer.begin({ requestId, method: req.method, route, keyId, ageMs, headers: req.headers });
    if (this.#trace) this.#fields["trace_id"] = this.#trace.id;
  }

  async #sendResponse(response: Response): Promise<void> {
    const body = await response.bytes();
    this.#send({ status: response.status, headers: Object.fromEntries(response.headers), body });
  }

  #send(answer: PlainAnswer | StreamedAnswer | UpgradeAnswer): void {
    const { status } = answer;
    this.#status = status;
    const headers = this.#headersWith(answer.headers);
    try {
      if ("upgrade" in answer) this.#upgrade(answer, this.#reply.upgrade(headers));
      else if ("begin" in answer) this.#begin(answer, this.#reply.stream(status, headers));
      else this.#reply.send(status, headers, answer.body);
    } catch (error) {
      // One that cannot be sent would keep the answer that says so from being sent as well.
      for (const name in answer.headers) delete headers[name];
      throw error;
    }
  }

  #begin(answer: StreamedAnswer, client: ClientStream): void {
    try {
      answer.begin(client);
    } catch (error) {
      // Nobody else would end it: the client would wait, and the connection be held, for ever.
      client.abort();
      throw error;
    }
  }

  #upgrade(answer: UpgradeAnswer, channel: ByteChannel): void {
    try {
      answer.upgrade(channel);
    } catch (error) {
      // As above: nobody else would end it.
      channel.terminate();
      throw error;
    }
  }

  #headersWith(own: Readonly<Record<string, string>>): Record<string, string> {
    const headers = this.answerHeaders;
    for (const name in own) headers[name] ??= own[name] ?? "";
    // What one credential may see is not for others, also where it came in a header that caches do not know.
    headers["cache-control"] ??= "no-store";
    const route = this.#found?.route;
    if (route && isAuthenticated(route)) {
      headers["openai-processing-ms"] = String(Math.round(this.#options.clock.monotonicMs() - this.#startedMs));
    } else {
      this.#tellBrowsers();
    }
    return headers;
  }

  /** Of what needs no credential: there a browser may come first. */
  #tellBrowsers(): void {
    const headers = this.answerHeaders;
    const { publicUrl } = this.#options;
    if (this.#isPage) for (const name in pageHeaders) headers[name] ??= pageHeaders[name] ?? "";
    if (publicUrl?.startsWith("https:")) headers["strict-transport-security"] = strictTransport;
    // By plain http browsers take it from this machine alone, and complain elsewhere.
    else if (publicUrl !== undefined) delete headers["cross-origin-opener-policy"];
  }

  #fail(error: GatewayError): void {
    let { status, headers, body } = errorAnswer(error);
    if (this.#found?.route.access === "page") ({ headers, body } = errorPage(error, status, this.requestId));
    this.#status = status;
    if (error.code === "method_not_allowed") {
      this.answerHeaders["allow"] = this.#table.allowed(pathOf(this.req.target)).join(", ");
    }
    Object.assign(this.answerHeaders, headers);
    if (status === 401) this.#nameAuthorizationServer();
    // RFC 9111, 4.2.2: some errors, such as 404, would be kept by caches that are told nothing.
    this.answerHeaders["cache-control"] ??= "no-store";
    this.#tellBrowsers();
    if (!this.#reply.begun) this.#reply.send(status, this.answerHeaders, body);
    if (!this.#deferred) this.#write(error);
  }

  /** A client that knows only the address of the API learns where to get a token. */
  #nameAuthorizationServer(): void {
    const challenge = this.answerHeaders["www-authenticate"];
    const metadata = this.#options.resourceMetadata?.();
    if (challenge === undefined || metadata === undefined) return;
    this.answerHeaders["www-authenticate"] = `${challenge}, resource_metadata="${metadata}"`;
  }

  #write(error?: GatewayError): void {
    const fields = this.#fields;
    const { clock, observer, log, requestLog } = this.#options;
    const status = this.#status;
    const durationMs = clock.monotonicMs() - this.#startedMs;
    fields["status"] = status;
    fields["ms"] = Math.round(durationMs * 10) / 10;
    if (error) {
      fields["code"] = error.code;
      if (error.detail !== undefined) fields["detail"] = error.detail;
    }
    const level = levelOfLine(fields, durationMs, requestLog?.() ?? everyRequest, Math.random);
    if (level !== undefined) log[level]("request", fields);
    const { requestId, req } = this;
    this.#trace?.end(status, error?.code);
    observer?.httpEnded({ requestId, method: req.method, route: this.#found?.route.path, status, durationMs });
  }
}

/** Whether it needs a key, a token or a session; the others find out themselves who asks. */
function isAuthenticated(route: Route): route is ScopedRoute | PersonRoute {
  return route.access !== "public" && route.access !== "page" && route.access !== "machine";
}

function requirePerson(principal: Principal): PersonPrincipal {
  const { person } = principal;
  if (person) return { ...principal, person };
  throw new GatewayError(
    "permission_denied",
    "This is for people, not for keys and apps: sign in at a browser, or with `headrace login`.",
  );
}
