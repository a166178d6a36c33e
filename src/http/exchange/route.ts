// The type of a route: the server, the OpenAPI document and the tests all read the same table of routes.

import type { z } from "zod";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import { type ErrorCode, forbidden, type GatewayError } from "../../base/errors.ts";
import type { LogFields } from "../../base/log.ts";
import type { Principal, SignedInPerson } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { PausableChannel } from "../../http1/byte-channel.ts";
import type { AnswerFields, HeaderFields, IncomingRequest } from "../../http1/message.ts";
import type { MessageKind, MessageRequest } from "../../inference/message-request.ts";
import type { AddressLimit } from "../../policy/address-throttle.ts";
import type { OpenSlot } from "../../policy/open-requests.ts";

/** The headers of an answer. Further ones may be added until the answer is sent. */
export type AnswerHeaders = Record<string, AnswerFields[string]>;

/** One HTTP request while it is handled. */
export interface Exchange {
  readonly req: IncomingRequest;
  /** Path parameters from the route table, decoded. `*` is the rest of a wildcard path. */
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** The client's address. Forwarded addresses count only behind trusted proxies. */
  readonly clientAddress: string;
  /** Reports whether the request may do what this machine may without a key. */
  isLocal(): boolean;
  /** Reports whether the request has the first key of a development server and comes from the server's machine. */
  isOwnMachine(principal: Principal): boolean;
  /** Returns why a development key is not accepted from the request's origin; undefined if it is. */
  whyNotLocal(): string | undefined;
  /** The trace of the request, if the request is traced. */
  readonly trace?: RequestTrace | undefined;
  /** Headers for the answer, whether it is a success or an error. */
  readonly answerHeaders: AnswerHeaders;
  /** The request's line in the log, to which other code adds fields. */
  readonly line: Record<string, LogFields[string]>;
  /** Set by a route once the ledger has the request, which then reports its outcome itself. */
  isOnLedger?: boolean;
  /** Releases `resource` once, when the whole answer is sent or the client is gone. */
  releaseWhenOver(resource: { release(): void }): void;
  /**
   * Creates a separate request: a message on this connection after its upgrade, or background work after this request's
   * answer, which takes over its id and slot. `lender` is a connection whose messages use its own slot.
   */
  message(kind: MessageKind, lender?: SlotLender): MessageRequest;
  /** Defers the log line until `finish`, because the answer continues after the handler returns. */
  defer(): DeferredLine;
}

/** An open connection that lends its slot to a request that belongs to it. */
export interface SlotLender {
  /** Takes the slot; undefined if it is lent already, or was returned. */
  takeSlot(): OpenSlot | undefined;
  returnSlot(slot: OpenSlot): void;
}

export interface DeferredLine {
  finish(error?: GatewayError): void;
}

/** An answer in parts, for frequent requests where a web `Response` would cost too much. */
export interface PlainAnswer {
  status: number;
  headers: HeaderFields;
  body: string | Uint8Array | Bytes;
}

/** An answer that is sent piece by piece. */
export interface StreamedAnswer {
  status: number;
  headers: HeaderFields;
  /** Called one time, when the head of the answer is on its way. */
  begin(client: ClientStream): void;
}

/** An answer after which the connection continues with another protocol. */
export interface UpgradeAnswer {
  status: 101;
  headers: HeaderFields;
  /** Called one time, when the head of the answer is on its way. From then on the route owns the connection. */
  upgrade(channel: PausableChannel): void;
  /** Called if the connection could not be upgraded, perhaps after `upgrade` threw: releases what was taken for it. */
  abandoned?(): void;
}

/** Any kind of answer. A `Response` is sent whole. */
export type Answer = Response | PlainAnswer | StreamedAnswer | UpgradeAnswer;

export interface RouteDoc {
  operationId: string;
  summary: string;
  description?: string;
  tag:
    | "Inference"
    | "Stored chats"
    | "Stored responses"
    | "Conversations"
    | "Files"
    | "Batches"
    | "Models"
    | "Tools"
    | "Usage"
    | "Keys"
    | "Webhooks"
    | "Tokens"
    | "Apps"
    | "People"
    | "Tools"
    | "OAuth"
    | "Administration"
    | "Service";
  parameters?: readonly { name: string; in: "path"; description: string }[];
  /** The query's schema; its members are text, as in a URL, and `http/content/query.ts` reads them. */
  query?: z.ZodObject;
  requestBody?: z.ZodType;
  /** True if a request may omit its body, which then counts as an object without members. */
  bodyIsOptional?: true;
  /** The type of the request body, if it is not JSON. */
  requestType?: "application/x-www-form-urlencoded" | "multipart/form-data";
  /** If true, JSON is accepted in addition to `requestType`. */
  orJson?: boolean;
  /** An example of a valid request body. */
  example?: Readonly<Record<string, unknown>>;
  /** The answer of a success, 200 by default. */
  response: {
    status?: number;
    description: string;
    json?: z.ZodType;
    stream?: z.ZodType;
    contentTypes?: readonly string[];
  };
  /**
   * Answers that are neither a success nor an error of the table, by status. Several operations refer to one by `name`.
   */
  otherResponses?: Readonly<Record<number, { name?: string; description: string; json: z.ZodType }>>;
  /**
   * The route's own errors. `reference/openapi.ts` adds the errors that the route's access and the limits of addresses
   * add to every route.
   */
  errors?: readonly ErrorCode[];
}

/**
 * The format of errors: OpenAI's, as nearly everywhere, or Anthropic's for endpoints of its clients. `asked` means that
 * both kinds of clients use the route, and Anthropic's identify themselves by a header.
 */
export type ErrorForm = "openai" | "anthropic" | "asked";

interface RouteBase {
  /** The format of the route's errors; OpenAI's by default. */
  errorForm?: ErrorForm;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` stands for one segment, a `*` at the end for the rest: `/v1/models/*`, `/v1/keys/:id`. */
  path: string;
  doc: RouteDoc;
}

/**
 * A route that limits clients without a credential by their address, before anything is read for them.
 * policy/address-throttle.ts says what counts.
 */
interface Throttled {
  throttle: AddressLimit;
}

export interface PublicRoute extends RouteBase, Throttled {
  access: "public";
  /** Answers an address with too many requests in the route's own format. By default the answer is the usual error. */
  refuse?(exchange: Exchange, error: GatewayError): Answer;
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

export interface ScopedRoute extends RouteBase {
  access: Scope;
  /** True if the first key of a development server may use the route from this machine without the scope. */
  ownMachine?: true | undefined;
  /**
   * Called with an error that became the answer, also if it came before the handler, for example for a missing scope.
   */
  refused?(exchange: Exchange, principal: Principal, error: GatewayError, durationMs: number): void;
  handle(exchange: Exchange, principal: Principal): Answer | MaybePromise<Answer>;
}

/** A route for the records of a person who is signed in at a browser or with `headrace login`, whatever the scopes. */
export interface PersonRoute extends RouteBase {
  access: "person";
  handle(exchange: Exchange, principal: PersonPrincipal): Answer | MaybePromise<Answer>;
}

export type PersonPrincipal = Principal & { person: SignedInPerson };

/** A route of the API. Access is denied by default: a route without a scope must say `public` or name its audience. */
export type ApiRoute = PublicRoute | ScopedRoute | PersonRoute;

/**
 * A public page for people, which determines itself who is signed in. Errors become an error page. Not part of the
 * described API.
 */
export interface PageRoute extends Throttled {
  method: "GET" | "POST";
  path: string;
  access: "page";
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

/**
 * A route for other machines with their own proof of identity: nodes, and other replicas of this installation. Not part
 * of the described API.
 */
export interface MachineRoute {
  method: "GET" | "POST";
  path: string;
  access: "machine";
  /** `signed` requires each request to be signed by another replica, which is checked without reading anything. */
  throttle: AddressLimit | "signed";
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

export type Route = ApiRoute | PageRoute | MachineRoute;

/** Reports whether a route is part of the described API. */
export function isDescribed(route: Route): route is ApiRoute {
  return route.access !== "page" && route.access !== "machine";
}

/** Reports whether a route needs a key, a token or a session. Other routes identify the caller themselves. */
export function isAuthenticated(route: Route): route is ScopedRoute | PersonRoute {
  return route.access !== "public" && route.access !== "page" && route.access !== "machine";
}

/** Returns the person of the request, or throws `permission_denied`. */
export function requirePerson(principal: Principal): PersonPrincipal {
  const { person } = principal;
  if (person) return { ...principal, person };
  throw forbidden("This is for people, not for keys and apps: sign in at a browser, or with `headrace login`.");
}

/** Returns the name of a wildcard path's rest, for people. */
export function restName({ doc }: ApiRoute): string {
  return doc.parameters?.at(-1)?.name ?? "rest";
}
