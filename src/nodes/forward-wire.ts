// The form in which one replica sends another a request for a node, and of the answer with the outcome.
import { z } from "zod";
import { NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { errorCodes, GatewayError } from "../base/errors.ts";
import { priorities } from "../domain/models/policies/priority.ts";
import { passedToolHeaders, toolMethods } from "../domain/tools/node-tools.ts";
import { operations } from "../requests/dialects/dialects.ts";
import type { TunnelRequest } from "./tunnel/contract.ts";

export const forwardPath = "/internal/nodes/:id/requests";

export const forwardHeaders = {
  /** The whole request without its body, as JSON in base64url. */
  about: "x-headrace-request",
  digest: "x-headrace-digest",
  replica: "x-headrace-replica",
  signature: "x-headrace-signature",
  /**
   * A header of the answer with one of `forwardOutcomes`. An answer without this header comes from something else than
   * a replica.
   */
  outcome: "x-headrace-outcome",
  /** A trailer after an answer that broke off, with the error as base64url. */
  fault: "x-headrace-fault",
} as const;

/**
 * The outcomes. `answer`: the answer of the node. `not_there`: this process does not hold the node's connection.
 * `error`: JSON of a GatewayError.
 */
export const forwardOutcomes = ["answer", "not_there", "error"] as const;
export type ForwardOutcome = (typeof forwardOutcomes)[number];

const aboutAny = z.object({
  requestId: z.string().min(1).max(200),
  /** The owner of the request's bytes. An older version does not send it. */
  holder: z.object({ key: z.string().min(1).max(200), account: z.string().min(1).max(200) }).optional(),
});
const aboutModel = aboutAny.extend({
  operation: z.enum(operations),
  model: z.string().min(1).max(256),
  stream: z.boolean(),
  width: z.int().min(1),
  /** The priority. An older version does not send it, and a newer version may have other values. */
  priority: z.enum(priorities).optional().catch(undefined),
});
const aboutTool = aboutAny.extend({
  server: z.string().min(1).max(64),
  method: z.enum(toolMethods),
  headers: z.record(z.string(), z.string()).transform(passedToolHeaders),
});
const about = z.union([aboutModel, aboutTool]);

/** A request without its body. */
export type AboutRequest = z.infer<typeof about>;

export function aboutText(request: TunnelRequest): string {
  const { requestId, memoryAccount } = request;
  const any = { requestId, holder: memoryAccount.ids };
  let said: AboutRequest;
  if ("server" in request) {
    const { server, method, headers } = request;
    said = { ...any, server, method, headers };
  } else {
    const { operation, model, stream, width, priority } = request;
    said = { ...any, operation, model, stream, width, priority };
  }
  return Buffer.from(JSON.stringify(said)).toString("base64url");
}

/** Parses the header about a request. Undefined for text that no replica sends. */
export function readAbout(text: string): AboutRequest | undefined {
  try {
    return about.parse(JSON.parse(Buffer.from(text, "base64url").toString()));
  } catch {
    return undefined;
  }
}

const errorShape = z.object({
  code: z.enum(errorCodes),
  message: z.string(),
  detail: z.string().optional(),
  retryAfterSeconds: z.number().optional(),
  engineLimited: z.boolean().optional(),
  noRoom: z.boolean().optional(),
});

/** Returns the text of an error for other replicas only, including what only the log may contain. */
export function errorText(error: GatewayError): string {
  const { code, message, detail, retryAfterSeconds, engineLimited } = error;
  const noRoom = error instanceof NoRoomError || undefined;
  return JSON.stringify({ code, message, detail, retryAfterSeconds, engineLimited, noRoom });
}

/** The trailer of an answer that broke off. */
export function faultTrailer(error: GatewayError): string {
  return `${forwardHeaders.fault}: ${Buffer.from(errorText(error)).toString("base64url")}`;
}

/** Returns the error in the value of the `fault` trailer, or undefined if the value is invalid. */
export function readFault(value: string): GatewayError | undefined {
  return readError(Buffer.from(value, "base64url").toString());
}

/** Parses the text of an error. Undefined if the text is invalid. */
export function readError(text: string): GatewayError | undefined {
  try {
    const { code, message, detail, retryAfterSeconds, engineLimited, noRoom } = errorShape.parse(JSON.parse(text));
    return new (noRoom ? NoRoomError : GatewayError)(code, message, {
      ...(detail === undefined ? {} : { detail }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(engineLimited === undefined ? {} : { engineLimited }),
    });
  } catch {
    return undefined;
  }
}
