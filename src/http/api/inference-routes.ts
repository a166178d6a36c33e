// The endpoints that run models without storing objects: chat completions, completions, embeddings, and tasks.

import type { Operation } from "../../domain/models/operation.ts";
import { isForm } from "../../multipart/boundary.ts";
import { dialects } from "../../requests/dialects/dialects.ts";
import type { Task } from "../../requests/dialects/task/task.ts";
import { tasks } from "../../requests/dialects/task/tasks.ts";
import { chatChunk, chatCompletion } from "../../wire/chat.ts";
import { textCompletion } from "../../wire/completion.ts";
import { embeddingList } from "../../wire/embedding.ts";
import type { RouteDoc, ScopedRoute } from "../exchange/route.ts";
import { answerInference, type InferenceRouteDeps } from "./inference-answer.ts";
import { noteRefused } from "./usage/refused-inference.ts";

export const inferenceErrors = [
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
    doc: { ...doc, tag: "Inference", requestBody: dialects[operation].schema, errors: inferenceErrors },
    handle: handlerOf(operation, deps),
    refused: (exchange, principal, error, durationMs) =>
      noteRefused(operation, exchange, principal, error, durationMs, deps),
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
      response: { description: "One embedding per input, in order.", json: embeddingList },
    }),
    ...tasks.flatMap((task) => task.paths.map((path) => route(path, task.operation, docOf(task, path)))),
  ];
}

/** Returns the handler of an operation. It accepts forms, JSON, or both, as the task declares. */
function handlerOf(operation: Operation, deps: InferenceRouteDeps): ScopedRoute["handle"] {
  const form = dialects[operation].task?.form;
  if (!form) return (exchange, principal) => answerInference(operation, exchange, principal, deps);
  return async (exchange, principal) => {
    if (form.orJson && !isForm(exchange.req.headers.get("content-type"))) {
      return await answerInference(operation, exchange, principal, deps);
    }
    // The code that reads forms is loaded with the first form.
    const { answerForm } = await import("./form-answer.ts");
    return await answerForm(operation, form, exchange, principal, deps);
  };
}

/** Returns the OpenAPI description of one path. Each further path of a task has its own operation id. */
function docOf({ paths, doc, answer, form, events, answersBytes }: Task, path: string) {
  const { operationId, answerDescription, ...others } = doc;
  const version = /^\/v(\d)/.exec(path)?.[1];
  const name = path === paths[0] ? operationId : `${operationId}V${version}`;
  // Only audio keeps its content type. Any other type, such as a page with scripts, is sent as
  // application/octet-stream.
  const isBytes = answersBytes({}) && { contentTypes: ["audio/*", "application/octet-stream"] };
  const response = {
    description: answerDescription,
    ...(isBytes || { json: answer }),
    ...(events && { stream: events.shape }),
  };
  const sent = form && { requestType: "multipart/form-data" as const, orJson: form.orJson };
  return { ...others, ...sent, operationId: name, response };
}
