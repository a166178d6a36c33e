// What a route is: the server, the OpenAPI document and the tests all read the same table of these.

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

/** They grow until they are sent. */
export type AnswerHeaders = Record<string, AnswerFields[string]>;

/** One request on its way through the server. */
export interface Exchange {
  readonly req: IncomingRequest;
  /** Path parameters as the route table matched them, decoded; `*` holds the rest of a wildcard path. */
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** The client's address, behind trusted proxies only. */
  readonly clientAddress: string;
  /** Whether it is granted what this machine needs no key for. */
  isLocal(): boolean;
  /** Reports whether the request has the first key of a development server and comes from the server's machine. */
  isOwnMachine(principal: Principal): boolean;
  /** Why a development key does not count from where it comes; undefined where it does. */
  whyNotLocal(): string | undefined;
  /** Where it is traced. */
  readonly trace?: RequestTrace | undefined;
  /** Headers for the answer, whether it becomes a success or an error. */
  readonly answerHeaders: AnswerHeaders;
  /** The request's line in the log, to which others add what they know of it. */
  readonly line: Record<string, LogFields[string]>;
  /** Set by a route once the ledger has the request, and so says itself what became of it. */
  isOnLedger?: boolean;
  /** Lets go of `held` once, when all of the answer is sent, or the client is gone. */
  releaseWhenOver(held: { release(): void }): void;
  /**
   * A request of its own: one that came as a message over the connection, once this one is upgraded; or what goes on of this
   * one in the background, with its id and its place, once it is answered. `lender`: of a connection whose messages use its
   * own place.
   */
  message(kind: MessageKind, lender?: SlotLender): MessageRequest;
  /** The log line waits for `finish`, because the answer goes on after the handler returns. */
  defer(): DeferredLine;
}

/** Something that is open and lends its place to a request that belongs to it. */
export interface SlotLender {
  /** Undefined where the place is lent already, or was given back. */
  takeSlot(): OpenSlot | undefined;
  returnSlot(place: OpenSlot): void;
}

export interface DeferredLine {
  finish(error?: GatewayError): void;
}

/** An answer in its parts: for what is asked so often that a web `Response` would be felt. */
export interface PlainAnswer {
  status: number;
  headers: HeaderFields;
  body: string | Uint8Array | Bytes;
}

/** An answer that is sent piece by piece. */
export interface StreamedAnswer {
  status: number;
  headers: HeaderFields;
  /** Called once, when the head of the answer is on its way. */
  begin(client: ClientStream): void;
}

/** Another protocol goes on where the request came from. */
export interface UpgradeAnswer {
  status: 101;
  headers: HeaderFields;
  /** Called once, when the head of the answer is on its way; the connection is its own from there on. */
  upgrade(channel: PausableChannel): void;
  /** Called where the connection could not be upgraded, perhaps after `upgrade` threw: gives back what was taken for it. */
  abandoned?(): void;
}

/** A `Response` is sent whole. */
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
  /** Members are text, as in a URL; `http/content/query.ts` reads them. */
  query?: z.ZodObject;
  requestBody?: z.ZodType;
  /** True if a request may leave its body out, which then counts as an object without members. */
  bodyIsOptional?: true;
  /** The type of the request body, where it is not JSON. */
  requestType?: "application/x-www-form-urlencoded" | "multipart/form-data";
  /** Whether JSON will do as well as that type. */
  orJson?: boolean;
  /** A request body that works as it stands. */
  example?: Readonly<Record<string, unknown>>;
  /** The answer of a success; 200 unless it says otherwise. */
  response: {
    status?: number;
    description: string;
    json?: z.ZodType;
    stream?: z.ZodType;
    contentTypes?: readonly string[];
  };
  /** Answers that are no success and no error of the table, by status; `name`: by which several operations refer to one. */
  otherResponses?: Readonly<Record<number, { name?: string; description: string; json: z.ZodType }>>;
  /** Those that its access and the limits of addresses bring to every route are left out; `reference/openapi.ts` adds them. */
  errors?: readonly ErrorCode[];
}

/**
 * Whose form errors have: OpenAI's, as nearly everywhere, or Anthropic's where its clients ask. `asked`: clients of both
 * ask, and Anthropic's say so by a header.
 */
export type ErrorForm = "openai" | "anthropic" | "asked";

interface RouteBase {
  /** Left out: OpenAI's. */
  errorForm?: ErrorForm;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` stands for one segment, a `*` at the end for the rest: `/v1/models/*`, `/v1/keys/:id`. */
  path: string;
  doc: RouteDoc;
}

/**
 * Who needs no credential is held by a limit of their address, before anything is read for them: no route without one.
 * What it counts for is in policy/address-throttle.ts.
 */
interface Throttled {
  throttle: AddressLimit;
}

export interface PublicRoute extends RouteBase, Throttled {
  access: "public";
  /** Where the address asks too often, in a form of its own; left out: as errors are everywhere. */
  refuse?(exchange: Exchange, error: GatewayError): Answer;
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

export interface ScopedRoute extends RouteBase {
  access: Scope;
  /** True if the first key of a development server may use the route from this machine, without the scope. */
  ownMachine?: true | undefined;
  /** Told of an error that was the answer, also of one that came before the route was asked, as for want of its scope. */
  refused?(exchange: Exchange, principal: Principal, error: GatewayError, durationMs: number): void;
  handle(exchange: Exchange, principal: Principal): Answer | MaybePromise<Answer>;
}

/** For a person, signed in at a browser or with `headrace login`, whatever the scopes: what is the person's own. */
export interface PersonRoute extends RouteBase {
  access: "person";
  handle(exchange: Exchange, principal: PersonPrincipal): Answer | MaybePromise<Answer>;
}

export type PersonPrincipal = Principal & { person: SignedInPerson };

/** Deny by default: a route without a scope has to say `public`, or whom it is for. */
export type ApiRoute = PublicRoute | ScopedRoute | PersonRoute;

/**
 * A page for people, public: it finds out itself who is signed in. What it throws becomes an error page. Not part of the
 * described API.
 */
export interface PageRoute extends Throttled {
  method: "GET" | "POST";
  path: string;
  access: "page";
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

/**
 * For other machines, which prove by themselves who they are: nodes, and other replicas of this installation. Not part of
 * the described API.
 */
export interface MachineRoute {
  method: "GET" | "POST";
  path: string;
  access: "machine";
  /** `signed`: each request has to be signed by another replica, and that is checked without reading anything. */
  throttle: AddressLimit | "signed";
  handle(exchange: Exchange): Answer | MaybePromise<Answer>;
}

export type Route = ApiRoute | PageRoute | MachineRoute;

/** Whether it is part of the described API. */
export function isDescribed(route: Route): route is ApiRoute {
  return route.access !== "page" && route.access !== "machine";
}

/** Whether it needs a key, a token or a session; the others find out themselves who asks. */
export function isAuthenticated(route: Route): route is ScopedRoute | PersonRoute {
  return route.access !== "public" && route.access !== "page" && route.access !== "machine";
}

/** The person that a route is for, or `permission_denied`. */
export function requirePerson(principal: Principal): PersonPrincipal {
  const { person } = principal;
  if (person) return { ...principal, person };
  throw forbidden("This is for people, not for keys and apps: sign in at a browser, or with `headrace login`.");
}

/** What the rest of a wildcard path is called where people read of it. */
export function restName({ doc }: ApiRoute): string {
  return doc.parameters?.at(-1)?.name ?? "rest";
}
