// Describes how replicas of the gateway send each other requests for nodes, and the answers.
import { z } from "zod";
import { NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { errorCodes, GatewayError } from "../base/errors.ts";
import { priorities } from "../domain/models/policies/priority.ts";
import { passedToolHeaders, toolMethods } from "../domain/tools/node-tools.ts";
import { operations } from "../requests/dialects/dialects.ts";
import type { TunnelRequest } from "./tunnel/contract.ts";

export const forwardPath = "/internal/nodes/:id/requests";

export const forwardHeaders = {
  /** Header with the request except its body, as JSON in base64url. */
  about: "x-headrace-request",
  digest: "x-headrace-digest",
  replica: "x-headrace-replica",
  signature: "x-headrace-signature",
  /** Response header with one of `forwardOutcomes`. Without it, the response does not come from a replica. */
  outcome: "x-headrace-outcome",
  /** Trailer after an incomplete answer: the error in base64url. */
  fault: "x-headrace-fault",
} as const;

/**
 * `answer`: the node's answer follows. `not_there`: the node is not connected to this process. `error`: a GatewayError
 * as JSON.
 */
export const forwardOutcomes = ["answer", "not_there", "error"] as const;
export type ForwardOutcome = (typeof forwardOutcomes)[number];

const aboutAny = z.object({
  requestId: z.string().min(1).max(200),
  /** The memory account for the request's bytes. Older versions do not send it. */
  holder: z.object({ key: z.string().min(1).max(200), account: z.string().min(1).max(200) }).optional(),
});
const aboutModel = aboutAny.extend({
  operation: z.enum(operations),
  model: z.string().min(1).max(256),
  stream: z.boolean(),
  width: z.int().min(1),
  /** Priority of the request. Older versions do not send it; unknown values of newer versions are ignored. */
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

/** Parses the header with the request; returns undefined if it is invalid. */
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

/** Returns an error as text for other replicas, including details that only the log may contain. */
export function errorText(error: GatewayError): string {
  const { code, message, detail, retryAfterSeconds, engineLimited } = error;
  const noRoom = error instanceof NoRoomError || undefined;
  return JSON.stringify({ code, message, detail, retryAfterSeconds, engineLimited, noRoom });
}

/** Returns the trailer for an answer that broke off. */
export function faultTrailer(error: GatewayError): string {
  return `${forwardHeaders.fault}: ${Buffer.from(errorText(error)).toString("base64url")}`;
}

/** Returns the error in a `fault` trailer; undefined if the value is invalid. */
export function readFault(value: string): GatewayError | undefined {
  return readError(Buffer.from(value, "base64url").toString());
}

/** Parses the text of an error; returns undefined if it is invalid. */
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
