// Schemas of batches in the API's requests and answers: OpenAI's, and Anthropic's for Messages.
import { z } from "zod";
import type { Batch } from "../domain/batches/batch.ts";
import { expiresAfter } from "./files.ts";
import { unixSeconds } from "./parts.ts";
import { metadata } from "./stored-chats.ts";

const orNone = unixSeconds.nullable();

export const batchRequest = z
  .object({
    input_file_id: z
      .string()
      .min(1)
      .max(128)
      .describe("Id of a file with the purpose `batch`, which has one request per line."),
    endpoint: z.string().describe("Path of all requests in the batch, such as `/v1/chat/completions`."),
    completion_window: z.literal("24h"),
    metadata: metadata.nullish(),
    output_expires_after: expiresAfter.optional(),
  })
  .meta({ id: "BatchRequest" });

const batchFault = z.object({
  code: z.string(),
  message: z.string(),
  line: z.int().nullable(),
  param: z.string().nullable(),
});

export const batchObject = z
  .object({
    id: z.string(),
    object: z.literal("batch"),
    endpoint: z.string(),
    model: z.string().nullable().describe("Model of the requests, if they all name the same one."),
    input_file_id: z.string(),
    completion_window: z.literal("24h"),
    status: z.enum([
      "validating",
      "failed",
      "in_progress",
      "finalizing",
      "completed",
      "expired",
      "cancelling",
      "cancelled",
    ]),
    errors: z.object({ object: z.literal("list"), data: z.array(batchFault) }).nullable(),
    output_file_id: z.string().nullable(),
    error_file_id: z.string().nullable(),
    created_at: unixSeconds,
    in_progress_at: orNone,
    expires_at: unixSeconds,
    finalizing_at: orNone,
    completed_at: orNone,
    failed_at: orNone,
    expired_at: orNone,
    cancelling_at: orNone,
    cancelled_at: orNone,
    request_counts: z.object({ total: z.int(), completed: z.int(), failed: z.int() }),
    usage: z.object({
      input_tokens: z.int(),
      input_tokens_details: z.object({ cached_tokens: z.int() }),
      output_tokens: z.int(),
      output_tokens_details: z.object({ reasoning_tokens: z.int() }),
      total_tokens: z.int(),
    }),
    metadata: z.record(z.string(), z.string()).nullable(),
  })
  .meta({ id: "Batch" });

/** The body of a request that creates a batch (Anthropic API reference, "Create a Message Batch"). */
export const messageBatchRequest = z
  .object({
    requests: z
      .array(
        z.looseObject({
          custom_id: z.string().min(1).max(64),
          params: z.looseObject({}).describe("Request body as for `/v1/messages`, without `stream`."),
        }),
      )
      .min(1),
  })
  .meta({ id: "MessageBatchRequest" });

const time = z.string().describe("RFC 3339 time.");

export const messageBatch = z
  .object({
    id: z.string(),
    type: z.literal("message_batch"),
    processing_status: z.enum(["in_progress", "canceling", "ended"]),
    request_counts: z.object({
      processing: z.int(),
      succeeded: z.int(),
      errored: z.int(),
      canceled: z.int(),
      expired: z.int(),
    }),
    created_at: time,
    expires_at: time,
    ended_at: time.nullable(),
    cancel_initiated_at: time.nullable(),
    archived_at: time.nullable(),
    results_url: z.string().nullable().describe("URL of the results, once the batch has ended."),
  })
  .meta({ id: "MessageBatch" });

export const messageBatchList = z
  .object({
    data: z.array(messageBatch),
    has_more: z.boolean(),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  })
  .meta({ id: "MessageBatchList" });

export const deletedMessageBatch = z
  .object({ id: z.string(), type: z.literal("message_batch_deleted") })
  .meta({ id: "DeletedMessageBatch" });

export function batchToWire(batch: Batch): z.infer<typeof batchObject> {
  const { status, ending, endedAt, promptTokens, completionTokens } = batch;
  const isCancelling = status === "finalizing" && ending === "cancelled";
  const endedAs = (wanted: Batch["status"]) => (status === wanted ? endedAt : null);
  return {
    ...{ id: batch.id, object: "batch", endpoint: batch.endpoint, input_file_id: batch.inputFileId },
    model: batch.models.length === 1 ? (batch.models[0] ?? null) : null,
    completion_window: "24h",
    status: isCancelling ? "cancelling" : status,
    errors: batch.faults.length === 0 ? null : { object: "list", data: batch.faults.map((fault) => ({ ...fault })) },
    ...{ output_file_id: batch.outputFileId, error_file_id: batch.errorFileId },
    ...{ created_at: batch.createdAt, in_progress_at: batch.inProgressAt, expires_at: batch.expiresAt },
    ...{ finalizing_at: batch.finalizingAt, cancelling_at: batch.cancellingAt },
    ...{ completed_at: endedAs("completed"), failed_at: endedAs("failed") },
    ...{ expired_at: endedAs("expired"), cancelled_at: endedAs("cancelled") },
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    usage: {
      input_tokens: promptTokens,
      input_tokens_details: { cached_tokens: batch.cachedTokens },
      output_tokens: completionTokens,
      output_tokens_details: { reasoning_tokens: batch.reasoningTokens },
      total_tokens: promptTokens + completionTokens,
    },
    metadata: batch.metadata ? { ...batch.metadata } : null,
  };
}

/**
 * Returns a batch in Anthropic's form. `resultsUrl` is the URL of the batch's results. As at Anthropic, unanswered
 * requests count as `canceled` or `expired` only after the batch has ended. Before, they count as `processing`.
 */
export function messageBatchToWire(batch: Batch, resultsUrl: string): z.infer<typeof messageBatch> {
  const { id, status, ending, endedAt, total, completed, failed } = batch;
  const remaining = total - completed - failed;
  const isEnded = endedAt !== null;
  return {
    ...{ id, type: "message_batch" },
    processing_status: isEnded ? "ended" : ending === "cancelled" ? "canceling" : "in_progress",
    request_counts: {
      processing: isEnded ? 0 : remaining,
      ...{ succeeded: completed, errored: failed },
      canceled: status === "cancelled" ? remaining : 0,
      expired: status === "expired" ? remaining : 0,
    },
    ...{ created_at: timeOf(batch.createdAt), expires_at: timeOf(batch.expiresAt) },
    ended_at: endedAt === null ? null : timeOf(endedAt),
    cancel_initiated_at: batch.cancellingAt === null ? null : timeOf(batch.cancellingAt),
    archived_at: null,
    results_url: isEnded && batch.outputFileId !== null ? resultsUrl : null,
  };
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}
