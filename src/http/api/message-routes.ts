// Anthropic's Messages endpoints: model requests and token counts.
import { z } from "zod";
import { dialects } from "../../requests/dialects/dialects.ts";
import { messageCountRequest, messageEvent, messageObject } from "../../wire/messages.ts";
import { requestIdHeader } from "../exchange/anthropic-errors.ts";
import type { ScopedRoute } from "../exchange/route.ts";
import {
  answerInference,
  type CountRouteDeps,
  countErrors,
  countFor,
  type InferenceRouteDeps,
} from "./inference-answer.ts";
import { inferenceErrors } from "./inference-routes.ts";
import { noteRefused } from "./usage/refused-inference.ts";

const tokenCount = z
  .looseObject({
    input_tokens: z.int(),
    estimated: z.literal(true).optional().describe("Present if no model server counted the tokens."),
  })
  .meta({ id: "MessageTokenCount" });

export function messageRoutes(deps: CountRouteDeps): ScopedRoute[] {
  return [
    {
      method: "POST",
      path: "/v1/messages/count_tokens",
      access: "chat:write",
      errorForm: "anthropic",
      doc: {
        operationId: "countMessageTokens",
        summary: "Count the tokens of a message's prompt",
        description:
          "If the model server can count tokens, it does so, up to 300 times a minute for each key. Otherwise they are estimated from the text. Nothing is charged.",
        tag: "Inference",
        requestBody: messageCountRequest,
        example: { model: "tiny-demo", messages: [{ role: "user", content: "Who are you?" }] },
        response: { description: "The count.", json: tokenCount },
        errors: countErrors,
      },
      async handle(exchange, principal) {
        Object.assign(exchange.answerHeaders, requestIdHeader(exchange.requestId));
        const { tokens, estimated } = await countFor("message", exchange, principal, deps);
        return Response.json({ input_tokens: tokens, ...(estimated ? { estimated } : {}) });
      },
    },
    createRoute(deps),
  ];
}

export function createRoute(deps: InferenceRouteDeps): ScopedRoute {
  return {
    method: "POST",
    path: "/v1/messages",
    access: "chat:write",
    errorForm: "anthropic",
    doc: {
      operationId: "createMessage",
      summary: "Create a message",
      description:
        "Anthropic's Messages API for any model. If the model server does not support the format, the request is translated. Errors have Anthropic's format. With `stream: true` the answer is a stream of named Server-Sent Events.",
      tag: "Inference",
      requestBody: dialects.message.schema,
      example: { model: "tiny-demo", max_tokens: 64, messages: [{ role: "user", content: "Who are you?" }] },
      response: { description: "The message, or its events.", json: messageObject, stream: messageEvent },
      errors: inferenceErrors,
    },
    handle: (exchange, principal) => answerInference("message", exchange, principal, deps),
    refused: (exchange, principal, error, durationMs) =>
      noteRefused("message", exchange, principal, error, durationMs, deps),
  };
}
