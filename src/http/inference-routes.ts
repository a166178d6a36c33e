// The endpoints that run models: decode and check the body once, hand over to `run`, answer with text or a stream.
import type { z } from "zod";
import { maskKeys } from "../domain/api-key.ts";
import { chatChunk, chatCompletion, chatRequest } from "../domain/chat.ts";
import { completionRequest, textCompletion } from "../domain/completion.ts";
import { embeddingList, embeddingRequest } from "../domain/embedding.ts";
import type { Operation } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { countTexts, type TextOrTokens } from "../domain/wire.ts";
import type { DecodedRequest } from "../inference/decoded-request.ts";
import { type InferenceDeps, run } from "../inference/run.ts";
import { type BodyLimits, type JsonBody, parseBody, readJsonBody } from "./body.ts";
import { renderError, toGatewayError } from "./errors.ts";
import { limitHeaders } from "./limit-headers.ts";
import type { Answer, Exchange, RouteDoc, ScopedRoute } from "./route.ts";
import { validate } from "./validation.ts";

export interface RequestLimits extends BodyLimits {
  messages: number;
}

export interface InferenceRouteDeps extends InferenceDeps {
  /** Read for every request: a reload may change them. */
  requestLimits(): RequestLimits;
}

const schemas: Readonly<Record<Operation, z.ZodType>> = {
  chat: chatRequest,
  completion: completionRequest,
  embedding: embeddingRequest,
};

const inferenceErrors = [
  "invalid_request",
  "model_not_found",
  "request_too_large",
  "unsupported_media_type",
  "insufficient_quota",
  "rate_limit_exceeded",
  "upstream_error",
  "upstream_timeout",
  "service_unavailable",
] as const;

export function inferenceRoutes(deps: InferenceRouteDeps): ScopedRoute[] {
  const route = (
    path: string,
    operation: Operation,
    doc: Omit<RouteDoc, "tag" | "requestBody" | "errors">,
  ): ScopedRoute => ({
    method: "POST",
    path,
    access: "chat:write",
    doc: { ...doc, tag: "Inference", requestBody: schemas[operation], errors: inferenceErrors },
    handle: (exchange, principal) => answer(operation, exchange, principal, deps),
  });
  return [
    route("/v1/chat/completions", "chat", {
      operationId: "createChatCompletion",
      summary: "Create a chat completion",
      description:
        "With `stream: true` the answer is a stream of Server-Sent Events that ends with `data: [DONE]`. An error in an open stream is one event with an `error` member, after which the connection closes without `[DONE]`. Lines that begin with a colon are keep-alives.",
      example: { model: "tiny-demo", stream: true, messages: [{ role: "user", content: "Who are you?" }] },
      response: { description: "The completion, or its chunks.", json: chatCompletion, stream: chatChunk },
    }),
    route("/v1/completions", "completion", {
      operationId: "createCompletion",
      summary: "Create a text completion (legacy)",
      example: { model: "tiny-demo", prompt: "Once upon a time", max_tokens: 40 },
      response: { description: "The completion, or its chunks.", json: textCompletion, stream: textCompletion },
    }),
    route("/v1/embeddings", "embedding", {
      operationId: "createEmbedding",
      summary: "Create embeddings",
      example: { model: "tiny-demo", input: ["How do I stream?", "What is the default port?"] },
      response: { description: "One embedding for each input, in order.", json: embeddingList },
    }),
  ];
}

const jsonType = { "content-type": "application/json" } as const;
const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Tells nginx and its kind not to hold events back.
  "x-accel-buffering": "no",
} as const;

async function answer(
  operation: Operation,
  exchange: Exchange,
  principal: Principal,
  deps: InferenceRouteDeps,
): Promise<Answer> {
  const limits = deps.requestLimits();
  const read = readJsonBody(exchange.req, limits);
  const request = decode(operation, read instanceof Promise ? await read : read, limits);
  exchange.note({ model: maskKeys(request.model), stream: request.stream });
  exchange.trace?.asked(request);
  let log: { finish(error?: GatewayError): void } | undefined;
  const result = await run(
    {
      request,
      principal,
      requestId: exchange.requestId,
      left: exchange.req.left,
      trace: exchange.trace,
      renderError,
      onLimits: (status) => void limitHeaders(status, exchange.answerHeaders),
      onStandIn(model) {
        exchange.answerHeaders["x-headrace-model"] = model;
        exchange.note({ served_by: model });
      },
      onEnd({ outcome, usage, error }) {
        const { promptTokens, completionTokens, estimated } = usage;
        exchange.note({ outcome, prompt_tokens: promptTokens, completion_tokens: completionTokens });
        if (estimated) exchange.note({ estimated });
        log?.finish(outcome === "failed" ? toGatewayError(error) : undefined);
      },
    },
    deps,
  );
  if (typeof result !== "function") return { status: 200, headers: jsonType, body: result };
  log = exchange.defer();
  return { status: 200, headers: streamHeaders, begin: result };
}

/** A body that came by another way than HTTP. Throws a GatewayError. */
export function decodeRequest(operation: Operation, body: Uint8Array, limits: RequestLimits): DecodedRequest {
  return decode(operation, parseBody(body, limits), limits);
}

function decode(operation: Operation, { bytes, text, members, body }: JsonBody, limits: RequestLimits): DecodedRequest {
  const { messages } = body;
  if (Array.isArray(messages) && messages.length > limits.messages) {
    throw new GatewayError(
      "invalid_request",
      `messages: must be an array of 1 to ${limits.messages} items (got an array of ${messages.length} items).`,
    );
  }
  validate(schemas[operation], body);
  return {
    operation,
    bytes,
    text,
    members,
    body,
    model: body["model"] as string,
    stream: operation !== "embedding" && body["stream"] === true,
    width: width(operation, body),
  };
}

/** Generations that run side by side for one request. */
function width(operation: Operation, body: Readonly<Record<string, unknown>>): number {
  if (operation === "embedding") return 1;
  const choices = Math.max(count(body["n"]), operation === "completion" ? count(body["best_of"]) : 1);
  return operation === "completion" ? choices * countTexts(body["prompt"] as TextOrTokens) : choices;
}

function count(value: unknown): number {
  return typeof value === "number" ? value : 1;
}
