// A request as the API shows it: one that ended, with its trail, or one that was refused before it began.

import { z } from "zod";
import { errorCodes } from "../../../base/errors.ts";
import { usdOf } from "../../../base/money.ts";
import { bookedOperations } from "../../../domain/models/operation.ts";
import type { RefusedRequest } from "../../../domain/usage/refused-request.ts";
import { stepResults, type Trail, type TrailStep, wasAsked } from "../../../domain/usage/trail.ts";
import { generationOf, type UsageRecord, usageOutcomes } from "../../../domain/usage/usage.ts";
import type { PastRequest } from "../../../policy/records/request-history.ts";
import { errorTable } from "../../../wire/errors.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import { firstTokenMs, shownSpeed, speed } from "./speed-wire.ts";

/** `refused` is no outcome of the ledger: it has no record of what never began. */
export const requestOutcomes = [...usageOutcomes, "refused"] as const;

const milliseconds = z.int().describe("Milliseconds.");

export const requestShape = z
  .object({
    object: z.literal("request"),
    id: z.string().describe("The `x-request-id` of its answer."),
    at: unixSeconds.describe("When it began, Unix seconds; of a refused one, when it was refused."),
    operation: z.enum(bookedOperations),
    model: z
      .string()
      .nullable()
      .describe(
        "The model that was asked for, or the server and the tool (`github/search`); null where the request was refused before its body was read.",
      ),
    key: z
      .string()
      .describe(
        "Id of the credential: of a key, of a signed-in member (`mbr_…`), of what an app was allowed (`grt_…`).",
      ),
    app: z.string().nullable().describe("Id of the OAuth app; null for none."),
    stream: z.boolean().nullable().describe("null as for `model`."),
    tags: z.array(z.string()).describe("What it is counted under; empty for a refused request, whatever it brought."),
    outcome: z
      .enum(requestOutcomes)
      .describe(
        "cancelled: its client left; interrupted: the server's process ended before it did; refused: it was answered with an error before it began, so it is no part of the usage.",
      ),
    error_code: z.string().nullable().describe("`code` of the error that ended it."),
    error_status: z
      .int()
      .nullable()
      .describe("Status of that error; in a stream that had begun, what it would have been."),
    error_message: z
      .string()
      .nullable()
      .describe("What the client of a refused request was told, but for names that the client made up; else null."),
    prompt_tokens: z.int(),
    cached_tokens: z.int().describe("Tokens of the prompt that were read from a cache."),
    cache_write_tokens: z.int().describe("Tokens of the prompt that were written to a cache."),
    completion_tokens: z.int(),
    reasoning_tokens: z.int().describe("Tokens of the answer that the model thought, as far as its server tells it."),
    total_tokens: z.int(),
    estimated: z.boolean().describe("The tokens are an estimate: the model server did not tell, or was not believed."),
    capped: z
      .boolean()
      .describe(
        "The model server was not believed: it told of more tokens than can have been, and these are the most, or of fewer than it delivered, and these are `estimated`.",
      ),
    from_cache: z.boolean().describe("The answer was one that was kept: no model was asked for it."),
    cost: z.number().nullable().describe("USD; null where the model has no price, and of a refused request."),
    upstream: z.string().nullable().describe("Who answered; null where nobody did."),
    attempts: z.int().describe("How often a model server was asked."),
    queue_ms: milliseconds.describe("Milliseconds of waiting for a place, before it was sent."),
    first_token_ms: firstTokenMs,
    duration_ms: milliseconds.describe("Milliseconds until its end, all of them."),
    tokens_per_second: speed,
  })
  .meta({ id: "Request" });

const stepShape = z
  .object({
    server: z
      .int()
      .nullable()
      .describe("Which of the model servers of this trail, counted from 1; null where the step is about none."),
    model: z.string().describe("The model that was tried: the one that was asked for, or one that stands in for it."),
    result: z
      .enum(stepResults)
      .describe(
        "answered: it took the request; refused: it answered with an error; timed_out; unreachable: the connection failed; broke_off: its answer ended early or could not be read; no_room: it took the request, and the gateway, or its node, could hold no more of its answer; cancelled: the client left, or the server stopped, meanwhile; queue_full and queue_timeout: no place was free, so none was asked. Not asked either: resting, after failures; away, not connected or about to be taken out of service; not_retried, as too many requests for the model are second tries already; overflowed: by the policy of its model it went to a server that others come before; masked, blocked and noted: a guardrail found something in the request or in the answer; over_quota: not asked, as it costs more than a quota has left.",
      ),
    status: z.int().nullable().describe("HTTP status of its answer, where that was an error."),
    started_ms: milliseconds.describe("Milliseconds from the start of the request."),
    duration_ms: milliseconds.describe("Milliseconds that it took."),
    upstream: z.string().nullable().describe("Name of the model server; for operators, null for others."),
    upstream_model: z.string().nullable().describe("Its own id of the model; likewise."),
    reason: z
      .string()
      .nullable()
      .describe(
        "What it said, or what is known of the fault: cleaned of credentials and of what it repeats of the request, and cut; likewise.",
      ),
    left_out: z
      .int()
      .describe(
        "How many steps before it are not kept: there were very many, or the server's disk was full. 0 otherwise.",
      ),
  })
  .meta({ id: "RequestStep" });

const counted = z.int().optional();
const usageDetails = z
  .object({
    cache_write_1h_tokens: counted.describe("Tokens that were written to a cache for an hour."),
    input_audio_tokens: counted,
    input_image_tokens: counted,
    output_audio_tokens: counted,
    output_image_tokens: counted,
    searches: counted.describe("Searches that the model server ran."),
    documents: counted.describe("Documents that were ranked or compared."),
    search_units: counted.describe("Search units that its vendor counts for them."),
    characters: counted.describe("Characters that were spoken."),
    seconds: counted.describe("Whole seconds of sound that were listened to."),
    images: counted.describe("Images that were made."),
    bytes_in: counted.describe("Bytes of what a tool was called with, as JSON."),
    bytes_out: counted.describe("Bytes of what it gave, as JSON."),
    tool_errors: counted.describe("1 where a tool said of its own result that it had failed."),
    replayed: counted.describe("1 where the answer was one that was kept: the tokens are those of when it was made."),
    served: z.array(z.string()).optional().describe("The tier, speed and region in which it says that it served."),
    billed: z
      .number()
      .optional()
      .describe("USD that the model's vendor says that it charges the operator; for operators."),
  })
  .meta({ id: "UsageDetails" });

export const oneRequest = requestShape
  .extend({
    usage_details: usageDetails
      .nullable()
      .describe(
        "What few model servers tell of their usage, and the bytes of a call of a tool; null where none was told.",
      ),
    trail: z
      .array(stepShape)
      .describe(
        "What was tried, oldest first. Empty where no model server was asked, and of requests that ended in failure before trails were kept. Of very many steps the first and the last are kept, and the last says how many are left out.",
      ),
    chat: z
      .string()
      .nullable()
      .describe("Id of the stored chat completion that it made; null where none is kept, or for who may not read it."),
    tool_content: z
      .object({
        arguments: z.string().describe("JSON of what the tool was called with, cut where it is long."),
        result: z.string().describe("JSON of what it gave, likewise."),
      })
      .nullable()
      .describe("What was said in a call of a tool, where `tools.record` keeps it; null likewise."),
  })
  .meta({ id: "RequestDetail" });

type WireRequest = z.infer<typeof requestShape>;
type WireStep = z.infer<typeof stepShape>;

export function isRefused(request: PastRequest): request is RefusedRequest {
  return "message" in request;
}

export function toWire(request: PastRequest): WireRequest {
  const { requestId, at, operation, model, keyId, appId, stream, errorCode, durationMs } = request;
  return {
    object: "request",
    id: requestId,
    at,
    operation,
    model,
    key: keyId,
    app: appId,
    stream,
    tags: isRefused(request) ? [] : [...(request.tags ?? [])],
    outcome: isRefused(request) ? "refused" : request.outcome,
    error_code: errorCode,
    error_status: statusOf(errorCode),
    ...(isRefused(request) ? { error_message: request.message, ...nothingUsed } : usedOf(request)),
    duration_ms: durationMs,
  };
}

const nothingUsed = {
  prompt_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  completion_tokens: 0,
  reasoning_tokens: 0,
  total_tokens: 0,
  estimated: false,
  capped: false,
  from_cache: false,
  cost: null,
  upstream: null,
  attempts: 0,
  queue_ms: 0,
  first_token_ms: null,
  tokens_per_second: null,
};

function usedOf(record: UsageRecord) {
  const generation = generationOf(record);
  return {
    error_message: null,
    prompt_tokens: record.promptTokens,
    cached_tokens: record.parts?.cachedTokens ?? 0,
    cache_write_tokens: record.parts?.cacheWriteTokens ?? 0,
    completion_tokens: record.completionTokens,
    reasoning_tokens: record.parts?.reasoningTokens ?? 0,
    total_tokens: record.promptTokens + record.completionTokens,
    estimated: record.estimated,
    capped: record.capped,
    from_cache: record.parts?.details?.replayed !== undefined,
    // A whole number: the nearest double of the quotient prints as the exact decimal.
    cost: record.nanoUsd === null ? null : usdOf(record.nanoUsd),
    upstream: record.upstream,
    attempts: attemptsIn(trailOf(record)),
    queue_ms: record.queueMs,
    first_token_ms: record.firstTokenMs,
    tokens_per_second: generation && shownSpeed(generation.tokens, generation.ms),
  };
}

function attemptsIn(trail: Trail): number {
  return trail.reduce((sum, step) => sum + Number(wasAsked(step)) + (step.leftOut ?? 0), 0);
}

/** `forOperator`: with what the vendor charges. */
export function detailsToWire(request: PastRequest, forOperator: boolean): z.infer<typeof usageDetails> | null {
  const details = isRefused(request) ? undefined : request.parts?.details;
  if (!details) return null;
  const { billedNanoUsd, served } = details;
  return {
    cache_write_1h_tokens: details.cacheWriteHourTokens,
    input_audio_tokens: details.inputAudioTokens,
    input_image_tokens: details.inputImageTokens,
    output_audio_tokens: details.outputAudioTokens,
    output_image_tokens: details.outputImageTokens,
    searches: details.searches,
    documents: details.documents,
    search_units: details.searchUnits,
    characters: details.characters,
    seconds: details.seconds,
    images: details.images,
    bytes_in: details.bytesIn,
    bytes_out: details.bytesOut,
    tool_errors: details.toolErrors,
    replayed: details.replayed,
    served: served && [...served],
    ...(forOperator && billedNanoUsd !== undefined ? { billed: usdOf(billedNanoUsd) } : {}),
  };
}

function statusOf(code: string | null): number | null {
  const known = errorCodes.find((one) => one === code);
  return known === undefined ? null : errorTable[known].status;
}

/** Where the record says nothing of it, the one that was asked answered. */
function trailOf({ trail, upstream, model, outcome, queueMs, durationMs }: UsageRecord): Trail {
  if (trail !== undefined) return trail;
  if (upstream === null) return [];
  const times = { startedMs: queueMs, durationMs: Math.max(0, durationMs - queueMs) };
  const result = outcome === "failed" ? "broke_off" : "answered";
  return [{ upstream, upstreamModel: null, model, result, status: null, reason: null, ...times }];
}

/** `forOperator`: with names, and what was said. */
export function trailToWire(request: PastRequest, forOperator: boolean): WireStep[] {
  const numbers = new Map<string, number>();
  const numberOf = ({ upstream }: TrailStep) => {
    if (upstream === null) return null;
    const number = numbers.get(upstream) ?? numbers.size + 1;
    numbers.set(upstream, number);
    return number;
  };
  return (isRefused(request) ? [] : trailOf(request)).map((step) => ({
    server: numberOf(step),
    model: step.model,
    result: step.result,
    status: step.status,
    started_ms: step.startedMs,
    duration_ms: step.durationMs,
    upstream: forOperator ? step.upstream : null,
    upstream_model: forOperator ? step.upstreamModel : null,
    reason: forOperator ? step.reason : null,
    left_out: step.leftOut ?? 0,
  }));
}
