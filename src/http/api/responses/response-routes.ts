// OpenAI's endpoints that create responses.
import { z } from "zod";
import { encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { MaybePromise } from "../../../base/deferred.ts";
import { GatewayError } from "../../../base/errors.ts";
import { invalidApiKey } from "../../../base/invalid-api-key.ts";
import type { Principal } from "../../../domain/principal.ts";
import { tagHeader } from "../../../domain/usage/request-tags.ts";
import { cacheHeader } from "../../../inference/cache/answer-cache.ts";
import { runResponse } from "../../../inference/hosted/run-response.ts";
import { stoppingError } from "../../../inference/stopping.ts";
import { requireScope } from "../../../policy/authorize.ts";
import type { Authenticator } from "../../../policy/credentials/authenticate.ts";
import { priorityHeader } from "../../../policy/request-priority.ts";
import type { DecodedRequest } from "../../../requests/decoded-request.ts";
import { dialects } from "../../../requests/dialects/dialects.ts";
import { responseFormat } from "../../../requests/dialects/response/format.ts";
import { asksForWebSocket } from "../../../websocket/handshake.ts";
import { compaction, compactRequest, responseEvent, responseObject } from "../../../wire/responses.ts";
import { apiKeyOf } from "../../exchange/api-key-header.ts";
import type { Answer, Exchange, ScopedRoute } from "../../exchange/route.ts";
import {
  answerInference,
  type CountRouteDeps,
  countErrors,
  countFor,
  type InferenceRouteDeps,
  type Runs,
  runFor,
  streamHeaders,
} from "../inference-answer.ts";
import { inferenceErrors } from "../inference-routes.ts";
import { noWebSocket, upgradeRequired } from "../realtime/websocket-answer.ts";
import { noteRefused } from "../usage/refused-inference.ts";
import { beginInBackground, type EventStreamDeps } from "./background-answer.ts";
import { compact } from "./response-compaction.ts";
import { type ResponseSocketDeps, upgradeToResponses } from "./response-socket.ts";

const tokenCount = z
  .looseObject({
    object: z.literal("response.input_tokens"),
    input_tokens: z.int(),
    estimated: z.literal(true).optional().describe("Present if no model server counted the tokens."),
  })
  .meta({ id: "ResponseTokenCount" });

export interface ResponseRouteDeps extends ResponseSocketDeps, EventStreamDeps, Pick<CountRouteDeps, "throttle"> {
  authenticator: Pick<Authenticator, "authenticate" | "still">;
}

export function responseRoutes(deps: ResponseRouteDeps): ScopedRoute[] {
  return [socketRoute(deps), compactRoute(deps), countRoute(deps), createRoute(deps, runOrBegin)];
}

function socketRoute(deps: ResponseRouteDeps): ScopedRoute {
  return {
    method: "GET",
    path: "/v1/responses",
    access: "chat:write",
    doc: {
      operationId: "connectResponses",
      summary: "Ask for responses over a WebSocket",
      description:
        'Each message `{type: "response.create", …}`, with the members of a request for a response, is answered by the events of its stream, one message for each event. An error is `{type: "error", status, error}`. Responses run one after the other, and 8 messages may wait. `previous_response_id` may name a stored response, or, with `store: false`, one of the last four responses of this connection. With `generate: false` no model is called: the response has no output, and later responses can continue it. `stream_id` is repeated in the events. The connection ends after an hour, after ten minutes without a message, or when its credential ends.',
      tag: "Inference",
      response: { status: 101, description: "The connection is a WebSocket." },
      otherResponses: noWebSocket,
      errors: ["invalid_request", "rate_limit_exceeded", "service_unavailable"],
    },
    handle: (exchange, principal) => connect(exchange, principal, deps),
  };
}

function compactRoute(deps: InferenceRouteDeps): ScopedRoute {
  return {
    method: "POST",
    path: "/v1/responses/compact",
    access: "chat:write",
    doc: {
      operationId: "compactResponse",
      summary: "Compact a conversation",
      description:
        "A model summarizes the conversation, and the user's messages stay. The summary is encrypted. Send it back as an item of a later request of the same account, and the gateway decrypts it.",
      tag: "Inference",
      requestBody: compactRequest,
      example: { model: "tiny-demo", input: "Who are you?" },
      response: { description: "The items that replace the conversation.", json: compaction },
      errors: inferenceErrors,
    },
    handle: (exchange, principal) => compact(exchange, principal, deps),
    refused: (exchange, principal, error, durationMs) =>
      noteRefused("response", exchange, principal, error, durationMs, deps),
  };
}

function countRoute(deps: CountRouteDeps): ScopedRoute {
  return {
    method: "POST",
    path: "/v1/responses/input_tokens",
    access: "chat:write",
    doc: {
      operationId: "countResponseTokens",
      summary: "Count the tokens of a response's input",
      description:
        "If the model server can count tokens, it does so, up to 300 times a minute for each key. Otherwise they are estimated from the text. Nothing is charged.",
      tag: "Inference",
      requestBody: dialects.response.schema,
      example: { model: "tiny-demo", input: "Who are you?" },
      response: { description: "The count.", json: tokenCount },
      errors: countErrors,
    },
    async handle(exchange, principal) {
      const { tokens, estimated } = await countFor("response", exchange, principal, deps);
      const object = "response.input_tokens";
      return Response.json({ object, input_tokens: tokens, ...(estimated ? { estimated } : {}) });
    },
  };
}

/** Declares the route that creates responses. `runs` executes the decoded request. */
export function createRoute<Deps extends InferenceRouteDeps>(deps: Deps, runs: Runs<Deps>): ScopedRoute {
  return {
    method: "POST",
    path: "/v1/responses",
    access: "chat:write",
    doc: {
      operationId: "createResponse",
      summary: "Create a response",
      description:
        "OpenAI's Responses API for any model. If the model server does not support the format, the request is translated. With `stream: true` the answer is a stream of named Server-Sent Events. With `background: true` the answer is immediately a `queued` response, or its stream, and the response continues without its client.",
      tag: "Inference",
      requestBody: dialects.response.schema,
      example: { model: "tiny-demo", input: "Who are you?", store: false },
      response: { description: "The response, or its events.", json: responseObject, stream: responseEvent },
      errors: inferenceErrors,
    },
    handle(exchange, principal) {
      const answered = answerInference("response", exchange, principal, deps, runs);
      return exchange.line["stream"] === false ? answered : orFailedStream(answered, exchange, deps);
    },
    refused: (exchange, principal, error, durationMs) =>
      noteRefused("response", exchange, principal, error, durationMs, deps),
  };
}

/**
 * Waits for the answer. If a stream was requested and the prompt is too long, returns a stream with a single error
 * event.
 */
async function orFailedStream(
  answered: MaybePromise<Answer>,
  exchange: Exchange,
  deps: InferenceRouteDeps,
): Promise<Answer> {
  try {
    return await answered;
  } catch (error) {
    if (exchange.line["stream"] === true && isOverflow(error)) return failedStream(exchange, error, deps);
    throw error;
  }
}

/** Runs the request, or starts a background response. */
function runOrBegin(
  exchange: Exchange,
  principal: Principal,
  request: DecodedRequest,
  deps: ResponseRouteDeps,
): MaybePromise<Answer> {
  if (!request.background) return runFor(exchange, principal, request, deps, runResponse);
  return beginInBackground(exchange, principal, request, deps);
}

function connect(exchange: Exchange, opener: Principal, deps: ResponseRouteDeps): Answer {
  const { req, clientAddress, requestId } = exchange;
  if (!asksForWebSocket(req)) return upgradeRequired("/v1/responses", "or POST for one response");
  const presented = {
    authorization: req.headers.get("authorization"),
    apiKey: apiKeyOf(req.headers),
    ...{ clientAddress, requestId },
    whyNotLocal: () => exchange.whyNotLocal(),
  };
  // A cookie does not authenticate here, because browsers send it with a WebSocket request of any page.
  if (presented.authorization === null && presented.apiKey === null) throw invalidApiKey("missing");
  if (deps.stopping.begun) throw stoppingError();
  return upgradeToResponses(exchange, {
    deps,
    opener,
    message: (lender) => exchange.message("websocket", lender),
    memoryAccount: req.memoryAccount,
    tagHeader: req.headers.get(tagHeader),
    priorityHeader: req.headers.get(priorityHeader),
    cacheHeader: req.headers.get(cacheHeader),
    // Called for each message. Throws if the credential is no longer valid, which closes the connection.
    async principal() {
      const principal = await deps.authenticator.authenticate(presented);
      requireScope(principal, "chat:write");
      return principal;
    },
    async holds() {
      requireScope(await deps.authenticator.authenticate({ ...presented, isCheck: true }), "chat:write");
    },
  });
}

function isOverflow(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.engineCode === "context_length_exceeded";
}

/**
 * Returns a stream whose only event says that the prompt is too long. After this event, Codex compacts the
 * conversation. After an error status, it would give up.
 */
function failedStream({ requestId, line }: Exchange, error: GatewayError, deps: InferenceRouteDeps): Answer {
  const writer = responseFormat.writer({
    id: dialects.response.idOf(requestId),
    model: String(line["model"]),
    created: deps.clock.nowSeconds(),
    promptTokens: 0,
    request: { stream: true },
    seal: { seal: () => "", open: () => undefined },
  });
  const { message, engineCode = error.code, param } = error;
  const events = writer.take() + writer.failure({ status: 400, code: engineCode, message, param });
  return { status: 200, headers: streamHeaders, begin: (client) => client.end(encodeByteText(events)) };
}
