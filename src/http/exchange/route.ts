// The types of routes. The server, the OpenAPI document and the tests read the same routes.

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

/** Headers of an answer, which may be changed until the answer is sent. */
export type AnswerHeaders = Record<string, AnswerFields[string]>;

/** One HTTP request and its context, as passed to handlers. */
export interface Exchange {
  readonly req: IncomingRequest;
  /** Decoded path parameters. `*` is the rest of a wildcard path. */
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** The client's IP address. Forwarded addresses count only from trusted proxies. */
  readonly clientAddress: string;
  /** Reports whether the request comes from this machine, where some actions need no key. */
  isLocal(): boolean;
  /** Reports whether the caller has the first key of a development server and is on the server's machine. */
  isOwnMachine(principal: Principal): boolean;
  /** Returns why a development key is refused for this request, or undefined if it is allowed. */
  whyNotLocal(): string | undefined;
  /** The trace of the request, if the request is traced. */
  readonly trace?: RequestTrace | undefined;
  /** Headers that are added to the answer, also to an error. */
  readonly answerHeaders: AnswerHeaders;
  /** The fields of the request's log line. Handlers may add fields. */
  readonly line: Record<string, LogFields[string]>;
  /** Set once the request is recorded in the ledger, so that it is not recorded as refused too. */
  isOnLedger?: boolean;
  /** Releases `resource` once, when the answer is sent completely or the client has left. */
  releaseWhenOver(resource: { release(): void }): void;
  /**
   * Creates the context of a WebSocket message on this connection. Also used for background work, which outlives this
   * request and takes over its id and slot. `lender` is the connection that lends its open-request slot.
   */
  message(kind: MessageKind, lender?: SlotLender): MessageRequest;
  /** Writes the log line later, when `finish` is called, because the answer continues after the handler returns. */
  defer(): DeferredLine;
}

/** A connection that lends its open-request slot to its messages, one at a time. */
export interface SlotLender {
  /** Takes the slot. Returns undefined if the slot is already lent or was released. */
  takeSlot(): OpenSlot | undefined;
  returnSlot(slot: OpenSlot): void;
}

export interface DeferredLine {
  finish(error?: GatewayError): void;
}

/** An answer without a `Response` object, for frequent requests. Creating a `Response` would be slower. */
export interface PlainAnswer {
  status: number;
  headers: HeaderFields;
  body: string | Uint8Array | Bytes;
}

/** An answer that is sent piece by piece. */
export interface StreamedAnswer {
  status: number;
  headers: HeaderFields;
  /** Called once, when the headers are being sent. */
  begin(client: ClientStream): void;
}

/** An answer that switches the connection to another protocol. */
export interface UpgradeAnswer {
  status: 101;
  headers: HeaderFields;
  /** Called once, when the headers are being sent. From then on the route owns the connection. */
  upgrade(channel: PausableChannel): void;
  /**
   * Called if the upgrade failed, so that the route releases its resources. `upgrade` may have been called and thrown.
   */
  abandoned?(): void;
}

/** Any kind of answer. A `Response` is read completely before it is sent. */
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
  /** True if the route supports the header `Idempotency-Key`. */
  repeatable?: true;
  /** The schema of the query parameters, which it parses from text. */
  query?: z.ZodObject;
  requestBody?: z.ZodType;
  /** True if the body may be missing. A missing body counts as an empty object. */
  bodyIsOptional?: true;
  /** The media type of the request body, if it is not JSON. */
  requestType?: "application/x-www-form-urlencoded" | "multipart/form-data";
  /** True if JSON is accepted in addition to `requestType`. */
  orJson?: boolean;
  /** An example of a valid request body. */
  example?: Readonly<Record<string, unknown>>;
  /** The successful answer. Its default status is 200. */
  response: {
    status?: number;
    description: string;
    json?: z.ZodType;
    stream?: z.ZodType;
    contentTypes?: readonly string[];
  };
  /**
   * Answers by status that the common error table does not contain. An answer with `name` becomes a shared component of
   * the OpenAPI document.
   */
  otherResponses?: Readonly<Record<number, { name?: string; description: string; json: z.ZodType }>>;
  /**
   * Errors that only this route has. `reference/openapi.ts` adds the errors that follow from its access and the address
   * limits.
   */
  errors?: readonly ErrorCode[];
}

/**
 * The format of errors: OpenAI's or Anthropic's. `asked` means that the format depends on the client, because clients
 * of both APIs use the route.
 */
export type ErrorForm = "openai" | "anthropic" | "asked";

interface RouteBase {
  /** The format of the route's errors. Default: OpenAI's. */
  errorForm?: ErrorForm;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /**
   * Path pattern, such as `/v1/keys/:id` or `/v1/models/*`. `:name` matches one segment, and a final `*` matches the
   * rest.
   */
  path: string;
  doc: RouteDoc;
}

/** A route for requests without a credential, which are limited by client address (see policy/address-throttle.ts). */
interface Throttled {
  throttle: AddressLimit;
}

export interface PublicRoute extends RouteBase, Throttled {
  access: "public";
  /** Returns the answer if the client's address has sent too many requests. Default: the usual error. */
  refuse?(exchange: Exchange, error: GatewayError): Answer;
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

export interface ScopedRoute extends RouteBase {
  access: Scope;
  /** True if a development server's first key may use the route from the same machine, even without the scope. */
  ownMachine?: true | undefined;
  /**
   * Called if the request is answered with an error. The error may precede the handler, for example because of a
   * missing scope.
   */
  refused?(exchange: Exchange, principal: Principal, error: GatewayError, durationMs: number): void;
  handle(exchange: Exchange, principal: Principal): Answer | MaybePromise<Answer>;
}

/** A route for signed-in people, in a browser or with `headrace login`. It needs no scope. */
export interface PersonRoute extends RouteBase {
  access: "person";
  handle(exchange: Exchange, principal: PersonPrincipal): Answer | MaybePromise<Answer>;
}

export type PersonPrincipal = Principal & { person: SignedInPerson };

/** A route of the API. It must declare its scope, or that it is public or for people. */
export type ApiRoute = PublicRoute | ScopedRoute | PersonRoute;

/** A public HTML page, which determines by itself whether a person is signed in. Not part of the OpenAPI document. */
export interface PageRoute extends Throttled {
  method: "GET" | "POST";
  path: string;
  access: "page";
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

/**
 * A route for other machines, such as nodes and replicas. The handler authenticates them. Not part of the OpenAPI
 * document.
 */
export interface MachineRoute {
  method: "GET" | "POST";
  path: string;
  access: "machine";
  /** `signed` means that every request needs the signature of another replica. */
  throttle: AddressLimit | "signed";
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

export type Route = ApiRoute | PageRoute | MachineRoute;

/** Reports whether a route is part of the OpenAPI document. */
export function isDescribed(route: Route): route is ApiRoute {
  return route.access !== "page" && route.access !== "machine";
}

/** Reports whether a route needs an API key, a token or a session. */
export function isAuthenticated(route: Route): route is ScopedRoute | PersonRoute {
  return route.access !== "public" && route.access !== "page" && route.access !== "machine";
}

/** Returns the principal of a person. Throws `permission_denied` for any other caller. */
export function requirePerson(principal: Principal): PersonPrincipal {
  const { person } = principal;
  if (person) return { ...principal, person };
  throw forbidden("This is for people, not for keys and apps: sign in at a browser, or with `headrace login`.");
}

/** Returns the display name of the path part that `*` matches. */
export function restName({ doc }: ApiRoute): string {
  return doc.parameters?.at(-1)?.name ?? "rest";
}
