// The result lines of a batch, in the form of OpenAI's or Anthropic's API.
import { createHash } from "node:crypto";
import { GatewayError } from "../base/errors.ts";
import type { AnsweredLine, Batch } from "../domain/batches/batch.ts";
import { renderAnthropicError } from "../wire/anthropic-errors.ts";
import { errorTable, renderError } from "../wire/errors.ts";

/** Returns the request id of a line. It is the same for every attempt in every process. */
export function requestIdOf({ id, createdAt }: Pick<Batch, "id" | "createdAt">, line: number): string {
  const digest = createHash("sha256").update(`${id} ${line}`).digest("hex");
  const time = (createdAt * 1_000).toString(16).padStart(12, "0");
  const parts = [time.slice(0, 8), time.slice(8), `7${digest.slice(0, 3)}`, `8${digest.slice(3, 6)}`];
  return `req_${parts.join("-")}-${digest.slice(6, 18)}`;
}

/** Returns the result line for an answer. `body` is the answer's JSON. */
export function answeredLine(batch: Batch, line: number, customId: string, body: string): string {
  const answer = oneLine(body);
  if (batch.form === "anthropic") {
    return `{"custom_id":${JSON.stringify(customId)},"result":{"type":"succeeded","message":${answer}}}`;
  }
  return openaiLine(batch, line, customId, 200, answer);
}

export function refusedLine(batch: Batch, line: number, customId: string, error: GatewayError): string {
  if (batch.form === "anthropic") {
    const rendered = renderAnthropicError(error, requestIdOf(batch, line));
    return `{"custom_id":${JSON.stringify(customId)},"result":{"type":"errored","error":${rendered}}}`;
  }
  return openaiLine(batch, line, customId, errorTable[error.code].status, renderError(error));
}

/** Returns the result line for a request that got no answer before its batch ended. */
export function unansweredLine(batch: Batch, { line, customId }: Pick<AnsweredLine, "line" | "customId">): string {
  const isCancelled = batch.ending === "cancelled";
  if (batch.form === "anthropic") {
    return JSON.stringify({ custom_id: customId, result: { type: isCancelled ? "canceled" : "expired" } });
  }
  const error = isCancelled
    ? { code: "batch_cancelled", message: "The batch was cancelled before this request was answered." }
    : {
        code: "batch_expired",
        message: "This request could not be executed before the completion window expired.",
      };
  return JSON.stringify({ id: idOf(batch, line), custom_id: customId, response: null, error });
}

/** Returns the result line for an answer whose encryption key was deleted. */
export function unreadableLine(batch: Batch, { line, customId }: Pick<AnsweredLine, "line" | "customId">): string {
  const error = new GatewayError("internal_error", "The answer was kept under a key that is no more.");
  return refusedLine(batch, line, customId, error);
}

function openaiLine(batch: Batch, line: number, customId: string, status: number, body: string): string {
  const head = `"id":${JSON.stringify(idOf(batch, line))},"custom_id":${JSON.stringify(customId)}`;
  const requestId = JSON.stringify(requestIdOf(batch, line));
  return `{${head},"response":{"status_code":${status},"request_id":${requestId},"body":${body}},"error":null}`;
}

function idOf(batch: Batch, line: number): string {
  return `batch_req_${requestIdOf(batch, line).slice("req_".length).replaceAll("-", "")}`;
}

/** Removes line ends from JSON. They can only occur between values. */
function oneLine(body: string): string {
  return /[\n\r]/.test(body) ? JSON.stringify(JSON.parse(body)) : body;
}
