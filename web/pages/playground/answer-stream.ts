// Sends a chat and reads the streamed answer; any deviation from the API is an error.
import { ApiFailure, send } from "../../api/client.ts";
import { readEvents } from "../../api/event-stream.ts";
import { isObject, type JsonObject } from "../../api/tools.ts";
import type { Usage } from "../../api/types.ts";

export interface AnswerObserver {
  /** Called when the model begins to answer. `requestId` is the request's id in the log. */
  opened(requestId: string | null): void;
  text(piece: string): void;
  /** Called with a piece of the model's reasoning. */
  thought(piece: string): void;
  /** Called with a piece of a tool call, as the chunk has it. */
  call(piece: JsonObject): void;
}

interface AnswerEnd {
  finishReason: string | null;
  /** The token counts of the answer; null if the server did not report usage. */
  usage: Usage | null;
}

export type AnswerPath = "/v1/chat/completions" | "/v1/completions";

/**
 * Sends a request and reports the streamed answer to `observer`. Rejects with ApiFailure or an AbortError; the observer
 * has then received everything that arrived before.
 */
export async function streamAnswer(
  path: AnswerPath,
  body: object,
  observer: AnswerObserver,
  signal: AbortSignal,
): Promise<AnswerEnd> {
  const asked = { ...body, stream: true, stream_options: { include_usage: true } };
  const response = await send("POST", path, {
    body: asked,
    headers: { accept: "text/event-stream" },
    signal,
  });
  const requestId = response.headers.get("x-request-id");
  const broken = (what: string, code = "upstream_error") =>
    new ApiFailure({ status: response.status, code, message: what, requestId });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
    await response.body?.cancel();
    throw broken("The server did not answer with a stream.");
  }
  observer.opened(requestId);
  const end: AnswerEnd = { finishReason: null, usage: null };
  let isDone = false;
  try {
    for await (const data of readEvents(response.body)) {
      // The loop goes on after `[DONE]`, because a connection can only be reused once the body is read to its end.
      if (data === "[DONE]") isDone = true;
      else if (!isDone) take(parsed(data), end, observer, broken);
    }
  } catch (error) {
    if (isDone) return end;
    signal.throwIfAborted();
    if (error instanceof ApiFailure) throw error;
    throw broken(error instanceof Malformed ? error.message : "The connection was lost. Try again.", "network");
  }
  if (isDone) return end;
  throw broken("The connection was closed before the end. Try again.", "network");
}

class Malformed extends Error {}

function take(
  chunk: JsonObject,
  end: AnswerEnd,
  observer: AnswerObserver,
  broken: (message: string, code: string) => ApiFailure,
): void {
  const { error, usage, choices } = chunk;
  if (isObject(error)) {
    const message = typeof error["message"] === "string" ? error["message"] : "The server gave no reason.";
    throw broken(message, typeof error["code"] === "string" ? error["code"] : "upstream_error");
  }
  if (!Array.isArray(choices)) throw new Malformed("The stream is invalid: an event is not a chunk.");
  if (usage !== undefined && usage !== null) end.usage = usageOf(usage);
  for (const choice of choices as unknown[]) {
    if (!isObject(choice)) throw new Malformed("The stream is invalid: a choice has the wrong form.");
    const { delta, text, finish_reason } = choice;
    const said = isObject(delta) ? delta : {};
    observer.thought(textOf(said["reasoning_content"] ?? said["reasoning"]));
    observer.text(textOf(said["content"] ?? said["refusal"] ?? text));
    const { tool_calls: calls } = said;
    if (Array.isArray(calls)) for (const piece of calls.filter(isObject)) observer.call(piece);
    if (typeof finish_reason === "string") end.finishReason = finish_reason;
  }
}

function parsed(data: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw new Malformed("The stream is invalid: an event is not JSON.");
  }
  if (!isObject(value)) throw new Malformed("The stream is invalid: an event is not an object.");
  return value;
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new Malformed("The stream is invalid: a part is not text.");
  return value;
}

function usageOf(value: unknown): Usage {
  const counts = ["prompt_tokens", "completion_tokens", "total_tokens"];
  if (!isObject(value) || counts.some((name) => typeof value[name] !== "number")) {
    throw new Malformed("The stream is invalid: its token counts have an unknown form.");
  }
  return value as Usage;
}
