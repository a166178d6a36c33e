// What one replica sends to another so that a request reaches a node, and how the answer says what came of it.
import { z } from "zod";
import type { EngineRequest } from "../domain/engine.ts";
import { errorCodes, GatewayError } from "../domain/errors.ts";

export const forwardPath = "/internal/nodes/:id/requests";

export const forwardHeaders = {
  /** JSON as base64url: all of the request but its body. */
  about: "x-headrace-request",
  digest: "x-headrace-digest",
  replica: "x-headrace-replica",
  signature: "x-headrace-signature",
  /** Of the answer: one of `forwardOutcomes`. An answer without it comes from something else. */
  outcome: "x-headrace-outcome",
} as const;

/** `answer`: the node's; `not_there`: this process does not hold its connection; `error`: JSON of a GatewayError. */
export const forwardOutcomes = ["answer", "not_there", "error"] as const;
export type ForwardOutcome = (typeof forwardOutcomes)[number];

const about = z.object({
  requestId: z.string().min(1).max(200),
  operation: z.enum(["chat", "completion", "embedding"]),
  model: z.string().min(1).max(256),
  stream: z.boolean(),
  width: z.int().min(1),
});

export function aboutText(request: EngineRequest): string {
  const { requestId, operation, model, stream, width } = request;
  return Buffer.from(JSON.stringify({ requestId, operation, model, stream, width })).toString("base64url");
}

/** Undefined for what no replica of this version sends. */
export function readAbout(text: string): Omit<EngineRequest, "body"> | undefined {
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
});

/** For another replica alone: with what only the log may have. */
export function errorText({ code, message, detail, retryAfterSeconds }: GatewayError): string {
  return JSON.stringify({ code, message, detail, retryAfterSeconds });
}

/** Undefined for what is none. */
export function readError(text: string): GatewayError | undefined {
  try {
    const { code, message, detail, retryAfterSeconds } = errorShape.parse(JSON.parse(text));
    return new GatewayError(code, message, {
      ...(detail === undefined ? {} : { detail }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    });
  } catch {
    return undefined;
  }
}
