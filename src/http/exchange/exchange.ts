// Handles one HTTP request: routes, authenticates, answers and logs it.

import { accountTicks } from "../../base/account-ticks.ts";
import { elapsedMs } from "../../base/clock.ts";
import { Deferred, type MaybePromise, whenSettled } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import type { LogFields } from "../../base/log.ts";
import { actorOf, keyOf, type Principal } from "../../domain/principal.ts";
import type { HttpEnd } from "../../domain/usage/observer.ts";
import type { RequestTrace, Tracer } from "../../domain/usage/trace.ts";
import type { HeaderFields, OverListener, PassableRequest, Reply } from "../../http1/message.ts";
import type { MessageKind } from "../../inference/message-request.ts";
import { stoppingError } from "../../inference/stopping.ts";
import { requireScope } from "../../policy/authorize.ts";
import type { PresentedCredentials } from "../../policy/credentials/authenticate.ts";
import { apiResource, resourceAt, resourceMetadataUrl, rootAsAsked } from "../../policy/credentials/resources.ts";
import type { OpenSlot } from "../../policy/open-requests.ts";
import { toGatewayError } from "../../wire/errors.ts";
import { inCoding, isWorthCoding } from "../content/content-coding.ts";
import { requireStorable } from "../content/query.ts";
import { errorPage, noSuchPage } from "../pages/error-page.ts";
import { beginStream, firstHeaders, plainAnswerOf, upgradeTo } from "./answers.ts";
import { inAnthropicForm, isAnthropicClient, isAskedAsAnthropic } from "./anthropic-errors.ts";
import { apiKeyOf, authorizationOf } from "./api-key-header.ts";
import { addBrowserHeaders } from "./browser-headers.ts";
import { clientAddress } from "./client-address.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { clientClosedRequest, errorAnswer } from "./errors.ts";
import { HandedOver } from "./handed-over.ts";
import { MessageExchange } from "./message-exchange.ts";
import { newRequestId } from "./request-id.ts";
import { everyRequest, levelOfLine } from "./request-line.ts";
import {
  type Answer,
  type AnswerHeaders,
  type ApiRoute,
  type DeferredLine,
  type Exchange,
  isAuthenticated,
  type MachineRoute,
  type PageRoute,
  type PersonRoute,
  type PlainAnswer,
  type PublicRoute,
  type Route,
  requirePerson,
  restName,
  type ScopedRoute,
  type SlotLender,
  type StreamedAnswer,
  type UpgradeAnswer,
} from "./route.ts";
import { type FoundRoute, pathOf, type RouteTable } from "./route-table.ts";
import type { HttpServerOptions } from "./server-options.ts";
import { unrouted } from "./unrouted.ts";

/**
 * Answers up to this size are not counted on the key's memory account, so they are sent even if the account is full.
 */
const minCountedBytes = 16 * 1024;

/**
 * Handles one request. It implements several small interfaces itself, so that fewer objects are created for each
 * request.
 */
export class HttpExchange implements Exchange, PresentedCredentials, HttpEnd, OverListener, DeferredLine, SlotLender {
  readonly req: PassableRequest;
  readonly requestId = newRequestId();
  readonly clientAddress: string;
  readonly answerHeaders: AnswerHeaders;
  readonly params: Readonly<Record<string, string>>;
  readonly line: Record<string, LogFields[string]>;
  status = 200;
  durationMs = 0;
  isOnLedger = false;
  readonly #reply: Reply;
  readonly #table: RouteTable;
  readonly #options: HttpServerOptions;
  readonly #found: FoundRoute | undefined;
  readonly #startedMs: number;
  #isPage: boolean;
  #principal: Principal | undefined;
  #trace: RequestTrace | undefined;
  #slot: OpenSlot | undefined;
  #isOver = false;
  /** A resource, such as reserved memory, that is released when the request has ended. */
  #resource: { release(): void } | undefined;
  #deferred = false;
  /** True if the answer may be compressed. Only valid until the answer's content coding is chosen. */
  #mayBeCoded: boolean;

  constructor(req: PassableRequest, reply: Reply, table: RouteTable, options: HttpServerOptions) {
    this.#startedMs = options.clock.monotonicMs();
    this.req = req;
    this.#reply = reply;
    this.#table = table;
    this.#options = options;
    this.#found = table.find(req.method, pathOf(req.target));
    this.params = this.#found?.params ?? {};
    this.clientAddress = clientAddress(req, options.trustedProxies);
    // HTML pages get no CORS headers, so that other sites cannot read them (RFC 9700, 4.2.4).
    const isPage = this.#found ? this.#found.route.access === "page" : table.isPage(pathOf(req.target));
    const origins = isPage ? [] : options.corsOrigins();
    const own = firstHeaders(this.requestId);
    this.answerHeaders = origins.length === 0 ? own : Object.assign(corsHeaders(req, origins), own);
    this.#isPage = isPage;
    this.#mayBeCoded = req.method === "GET" && mayBeCoded(this.#found?.route);
    // All usual fields are created now, because adding properties later would copy the object.
    this.line = {
      id: this.requestId,
      client: this.clientAddress,
      method: req.method,
      route: this.route ?? "none",
      account: undefined,
      key: undefined,
      model: undefined,
      stream: undefined,
      upstream: undefined,
      upstream_model: undefined,
      outcome: undefined,
      prompt_tokens: undefined,
      completion_tokens: undefined,
      status: undefined,
      ms: undefined,
    };
  }

  get method(): string {
    return this.req.method;
  }

  /** The path pattern of the request's route, such as `/v1/files/:id`. */
  get route(): string | undefined {
    return this.#found?.route.path;
  }

  get authorization(): string | null {
    return authorizationOf(this.req);
  }

  get apiKey(): string | null {
    return apiKeyOf(this.req.headers);
  }

  get resource(): string {
    return resourceAt(pathOf(this.req.target));
  }

  get trace(): RequestTrace | undefined {
    return this.#trace;
  }

  /** Handles the request. Never throws. */
  serve(): void {
    try {
      const handled = this.#preflight() ?? this.#handle();
      if (handled instanceof Deferred || handled instanceof Promise) whenSettled(handled, onAnswer, onFault, this);
      else this.answer(handled);
    } catch (thrown) {
      this.fault(thrown);
    }
  }

  /** Sends the route's answer. */
  answer(answer: Answer): void {
    try {
      if (answer instanceof Response) {
        whenSettled(this.#countedAnswer(answer), onAnswer, onFault, this);
      } else if (this.#mayBeCoded && "body" in answer && isWorthCoding(answer)) {
        this.#mayBeCoded = false;
        whenSettled(inCoding(answer, this.req.headers.get("accept-encoding")), onAnswer, onFault, this);
      } else {
        this.#options.beforeAnswer?.();
        this.#send(answer);
        if (!this.#deferred) this.#write();
      }
    } catch (thrown) {
      this.fault(thrown);
    }
  }

  /** Reads the whole body. A large one counts on the key's memory account until the client has received it. */
  async #countedAnswer(response: Response): Promise<PlainAnswer> {
    const answer = await plainAnswerOf(response);
    const { byteLength } = answer.body;
    const refusal = this.#principal && byteLength > minCountedBytes ? this.req.hold(byteLength) : undefined;
    if (refusal) throw refusal;
    return answer;
  }

  /** Answers with the error that the route threw. */
  fault(thrown: unknown): void {
    if (thrown instanceof HandedOver) {
      this.#options.elsewhere?.pass(this.req, this.#reply, thrown.body);
      return;
    }
    this.#options.beforeAnswer?.();
    if (!this.req.clientGone.cancelled) {
      this.#fail(toGatewayError(thrown));
      return;
    }
    // If the client has left, nothing is sent.
    this.status = clientClosedRequest;
    if (!this.#deferred) this.#write();
  }

  isLocal(): boolean {
    return this.#options.locality.isLocal(this.req);
  }

  isOwnMachine(principal: Principal): boolean {
    return this.isLocal() && this.#options.isFirstKey?.(principal) === true;
  }

  whyNotLocal(): string | undefined {
    return this.#options.locality.whyNotLocal(this.req);
  }

  /** Called when the answer has been sent completely, or the client has left. */
  over(): void {
    this.#isOver = true;
    this.takeSlot()?.release();
    this.#resource?.release();
    this.#resource = undefined;
  }

  releaseWhenOver(resource: { release(): void }): void {
    if (this.#isOver) resource.release();
    else this.#resource = resource;
  }

  takeSlot(): OpenSlot | undefined {
    const slot = this.#slot;
    this.#slot = undefined;
    return slot;
  }

  returnSlot(slot: OpenSlot): void {
    if (this.#isOver) slot.release();
    else this.#slot = slot;
  }

  finish(error?: GatewayError): void {
    this.#write(error);
  }

  defer(): DeferredLine {
    this.#deferred = true;
    return this;
  }

  message(kind: MessageKind, ofConnection?: SlotLender): MessageExchange {
    const { clientAddress, method, req, route = "none", requestId } = this;
    const lender = kind === "background" ? this : ofConnection;
    const came = { kind, requestId, clientAddress, method, route, headers: req.headers, lender };
    return new MessageExchange(came, this.#options);
  }

  #preflight(): PlainAnswer | undefined {
    const { req } = this;
    if (req.method !== "OPTIONS") return undefined;
    return this.#table.isPage(pathOf(req.target)) ? undefined : preflight(req, this.#options.corsOrigins());
  }

  #handle(): Answer | MaybePromise<Answer> {
    const route = this.#found?.route;
    if (!route) throw unrouted(this.req, this.#table, this.#options.baseUrl());
    // During shutdown, only authenticated requests and pages are refused. Monitors, and replicas that forward requests,
    // are still served.
    if (this.#options.isRefusing?.() && (isAuthenticated(route) || route.access === "page")) throw stoppingError();
    if (!isAuthenticated(route)) return this.#throttled(route) ?? route.handle(this);
    const principal = this.#authenticate();
    if (principal instanceof Promise) return this.#authenticatedLater(route, principal);
    return this.#authenticated(route, principal);
  }

  async #authenticatedLater(route: ScopedRoute | PersonRoute, principal: Promise<Principal>): Promise<Answer> {
    return await this.#authenticated(route, await principal);
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
    return authenticator.authenticate(this);
  }

  #authenticated(route: ScopedRoute | PersonRoute, principal: Principal): Answer | MaybePromise<Answer> {
    const keyId = keyOf(principal).id;
    this.#principal = principal;
    this.line["account"] = principal.account.id;
    this.line["key"] = keyId;
    if (this.#options.tracer) this.#beginTrace(this.#options.tracer, route.path, principal);
    this.#slot = this.#options.openRequests.enter(principal);
    this.req.memoryAccount = this.#slot.memoryAccount;
    this.req.onOver(this);
    const tick = route.method === "GET" ? accountTicks.next(principal.account.id) : undefined;
    return tick ? this.#answeredLater(route, principal, tick) : this.#answered(route, principal);
  }

  async #answeredLater(route: ScopedRoute | PersonRoute, principal: Principal, tick: Promise<void>): Promise<Answer> {
    await tick;
    if (this.req.clientGone.cancelled)
      throw new GatewayError("service_unavailable", "The client left before its turn.");
    return await this.#answered(route, principal);
  }

  #answered(route: ScopedRoute | PersonRoute, principal: Principal): Answer | MaybePromise<Answer> {
    if (route.access === "person") {
      const person = requirePerson(principal);
      this.#requireStorableParams(route);
      return route.handle(this, person);
    }
    if (!(route.ownMachine && this.isOwnMachine(principal))) requireScope(principal, route.access);
    this.#requireStorableParams(route);
    return route.handle(this, principal);
  }

  #requireStorableParams(route: ApiRoute): void {
    for (const name in this.params) {
      requireStorable(name === "*" ? restName(route) : name, this.params[name] ?? "");
    }
  }

  #beginTrace(tracer: Tracer, route: string, principal: Principal): void {
    const { requestId, req } = this;
    const [keyId, actorId] = [keyOf(principal).id, actorOf(principal).id];
    const ageMs = this.#options.clock.monotonicMs() - this.#startedMs;
    this.#trace = tracer.begin({ requestId, method: req.method, route, keyId, actorId, ageMs, headers: req.headers });
    if (this.#trace) this.line["trace_id"] = this.#trace.id;
  }

  #send(answer: PlainAnswer | StreamedAnswer | UpgradeAnswer): void {
    const { status } = answer;
    this.status = status;
    const headers = this.#headersWith(answer.headers);
    try {
      if ("upgrade" in answer) upgradeTo(answer, () => this.#reply.upgrade(headers));
      else if ("begin" in answer) beginStream(answer, this.#reply.stream(status, headers));
      else this.#reply.send(status, headers, answer.body);
    } catch (error) {
      // Removes the headers of the answer. An invalid one among them would also break the error answer.
      for (const name in answer.headers) delete headers[name];
      throw error;
    }
  }

  #headersWith(own: HeaderFields): AnswerHeaders {
    const headers = this.answerHeaders;
    for (const name in own) headers[name] ??= own[name];
    const { vary } = own;
    if (vary !== undefined && headers["vary"] !== vary) headers["vary"] = addedTo(headers["vary"], vary);
    // Prevents caches from sharing the answer between callers. Caches may not know the header that contains the key.
    headers["cache-control"] ??= "no-store";
    const route = this.#found?.route;
    if (route && isAuthenticated(route)) {
      headers["openai-processing-ms"] = Math.round(this.#options.clock.monotonicMs() - this.#startedMs);
    } else {
      addBrowserHeaders(headers, this.#isPage, this.#options.publicUrl);
    }
    return headers;
  }

  #fail(error: GatewayError): void {
    let { status, headers, body } = this.#errorAnswer(error);
    if (this.#found?.route.access === "page") ({ headers, body } = errorPage(error, status, this.requestId));
    else if (error.code === "not_found" && this.#isReaderLost()) {
      this.#isPage = true;
      ({ headers, body } = noSuchPage(pathOf(this.req.target), this.requestId));
    }
    if (!this.#found) this.answerHeaders["vary"] = addedTo(this.answerHeaders["vary"], "Accept");
    this.status = status;
    if (error.code === "method_not_allowed") {
      this.answerHeaders["allow"] = this.#table.allowed(pathOf(this.req.target)).join(", ");
    }
    Object.assign(this.answerHeaders, headers);
    if (status === 401 || status === 403) this.#nameAuthorizationServer(status);
    // Without this header, caches could store errors such as 404 (RFC 9111, 4.2.2).
    this.answerHeaders["cache-control"] ??= "no-store";
    addBrowserHeaders(this.answerHeaders, this.#isPage, this.#options.publicUrl);
    if (!this.#reply.begun) this.#reply.send(status, this.answerHeaders, body);
    if (!this.#deferred) this.#write(error);
    this.#reportRefused(error);
  }

  #errorAnswer(error: GatewayError): PlainAnswer {
    const answer = errorAnswer(error);
    const route = this.#found?.route;
    const form = route !== undefined && "errorForm" in route ? route.errorForm : undefined;
    const isAnthropic = route
      ? form === "anthropic" || (form === "asked" && isAnthropicClient(this.req))
      : isAskedAsAnthropic(this.req, pathOf(this.req.target));
    return isAnthropic ? inAnthropicForm(answer, error, this.requestId) : answer;
  }

  #reportRefused(error: GatewayError): void {
    const route = this.#found?.route;
    if (!this.#principal || this.isOnLedger || !route || !("refused" in route)) return;
    route.refused?.(this, this.#principal, error, elapsedMs(this.#options.clock, this.#startedMs));
  }

  /** Reports whether a person opened an unknown page in a browser. Programs send a key, or use paths below /v1. */
  #isReaderLost(): boolean {
    const { method, target, headers } = this.req;
    const isReading = method === "GET" || method === "HEAD";
    if (this.#found || !isReading || this.authorization !== null || this.apiKey !== null) return false;
    return !pathOf(target).startsWith("/v1/") && /\btext\/html\b/i.test(headers.get("accept") ?? "");
  }

  /**
   * Adds the URL of the OAuth metadata to a challenge, so that a client learns where to get a token. For MCP, the
   * challenge also names the scope to request.
   */
  #nameAuthorizationServer(status: number): void {
    const challenge = this.answerHeaders["www-authenticate"];
    const { resource } = this;
    if (challenge === undefined || (status === 403 && resource === apiResource)) return;
    const issuer = this.#options.baseUrl().replace(/\/v1$/, "");
    const scope = resource === apiResource || status === 403 ? "" : ', scope="tools:use"';
    const root = resource === apiResource ? issuer : rootAsAsked(issuer, this.req.headers.get("host"));
    const metadata = resourceMetadataUrl(resource, root);
    this.answerHeaders["www-authenticate"] = `${challenge}, resource_metadata="${metadata}"${scope}`;
  }

  #write(error?: GatewayError): void {
    const { line, status } = this;
    const { clock, observer, log, requestLog } = this.#options;
    this.durationMs = elapsedMs(clock, this.#startedMs);
    line["status"] = status;
    line["ms"] = Math.round(this.durationMs * 10) / 10;
    if (error) {
      line["code"] = error.code;
      if (error.detail !== undefined) line["detail"] = error.detail;
    }
    const level = levelOfLine(line, this.durationMs, requestLog?.() ?? everyRequest, Math.random);
    if (level !== undefined) log[level]("request", line);
    this.#trace?.end(status, error?.code);
    observer?.httpEnded(this);
  }
}

/**
 * Reports whether answers of a route may be compressed. An answer that may contain a session token beside untrusted
 * text must not, because its compressed length would reveal the token (BREACH).
 */
function mayBeCoded(route: Route | undefined): boolean {
  return route !== undefined && route.access !== "page" && route.access !== "person" && route.access !== "machine";
}

function addedTo(names: AnswerHeaders[string], name: string): string {
  return names === undefined ? name : `${names}, ${name}`;
}

function onAnswer(answer: Answer, exchange: HttpExchange): void {
  exchange.answer(answer);
}

function onFault(thrown: unknown, exchange: HttpExchange): void {
  exchange.fault(thrown);
}
