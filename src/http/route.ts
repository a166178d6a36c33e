// What a route is: the server, the OpenAPI document and the tests all read the same table of these.
import type { z } from "zod";
import type { ErrorCode, GatewayError } from "../domain/errors.ts";
import type { LogFields } from "../domain/log.ts";
import type { Principal } from "../domain/principal.ts";
import type { Scope } from "../domain/scope.ts";

/** One request on its way through the server. */
export interface Exchange {
  req: Request;
  /** Path parameters as the router matched them; `*` holds the rest of a wildcard path, decoded. */
  params: Readonly<Record<string, string>>;
  requestId: string;
  /** The client's address, behind trusted proxies only. */
  clientAddress: string;
  /** Headers for the answer, whether it becomes a success or an error. */
  answerHeaders: Record<string, string>;
  /** Adds to the request's line in the log. */
  note(fields: LogFields): void;
  /** The body is read: from here on silence is the model's, and thinking may take longer than any idle timer. */
  bodyRead(): void;
  /** The log line waits for `finish`, because the answer goes on after the handler returns. */
  defer(): { finish(error?: GatewayError): void };
}

export interface RouteDoc {
  operationId: string;
  summary: string;
  description?: string;
  tag: "Inference" | "Stored chats" | "Models" | "Usage" | "Keys" | "Tokens" | "Administration" | "Service";
  parameters?: readonly { name: string; in: "path"; description: string }[];
  /** Members are text, as in a URL; `http/query.ts` reads them. */
  query?: z.ZodObject;
  requestBody?: z.ZodType;
  /** A request body that works as it stands. */
  example?: Readonly<Record<string, unknown>>;
  /** The answer of a success; 200 unless it says otherwise. */
  response: { status?: number; description: string; json?: z.ZodType; stream?: z.ZodType; contentType?: string };
  /** Answers that are no success and no error of the table, by status. */
  otherResponses?: Readonly<Record<number, { description: string; json: z.ZodType }>>;
  errors?: readonly ErrorCode[];
}

interface RouteBase {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** As Bun's router reads it: `/v1/models/*`, `/v1/keys/:id`. */
  path: string;
  doc: RouteDoc;
}

export interface PublicRoute extends RouteBase {
  access: "public";
  handle(exchange: Exchange): Response | Promise<Response>;
}

export interface ScopedRoute extends RouteBase {
  access: Scope;
  handle(exchange: Exchange, principal: Principal): Response | Promise<Response>;
}

/** Deny by default: a route without a scope has to say `public`. */
export type Route = PublicRoute | ScopedRoute;
