// The JSON of a request: either one that has ended, with its attempt log, or a refused one.

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

/** All outcomes in the API. The ledger has no `refused`, because refused requests are stored elsewhere. */
export const requestOutcomes = [...usageOutcomes, "refused"] as const;

const milliseconds = z.int().describe("Milliseconds.");

export const requestShape = z
  .object({
    object: z.literal("request"),
    id: z.string().describe("`x-request-id` of the answer."),
    at: unixSeconds.describe("Start of the request in Unix seconds. For a refused request, the time of the refusal."),
    operation: z.enum(bookedOperations),
    model: z
      .string()
      .nullable()
      .describe(
        "Requested model, or MCP server and tool (`github/search`). null if the request was refused before its body was read.",
      ),
    key: z
      .string()
      .describe("Id of the credential: a key, a signed-in member (`mbr_…`) or the grant of an app (`grt_…`)."),
    app: z.string().nullable().describe("Id of the OAuth app. null for none."),
    stream: z.boolean().nullable().describe("null under the same condition as `model`."),
    tags: z.array(z.string()).describe("Tags of the request. Always empty for a refused request."),
    outcome: z
      .enum(requestOutcomes)
      .describe(
        "`cancelled`: the client disconnected. `interrupted`: the server's process ended first. `refused`: the request got an error before it began, so it is not part of the usage.",
      ),
    error_code: z.string().nullable().describe("`code` of the error that ended the request."),
    error_status: z
      .int()
      .nullable()
      .describe("HTTP status of the error. For a stream that had begun, the status that it would have had."),
    error_message: z
      .string()
      .nullable()
      .describe(
        "Error message to the client of a refused request, without names that the client made up. Otherwise null.",
      ),
    prompt_tokens: z.int(),
    cached_tokens: z.int().describe("Prompt tokens read from a cache."),
    cache_write_tokens: z.int().describe("Prompt tokens written to a cache."),
    completion_tokens: z.int(),
    reasoning_tokens: z.int().describe("Reasoning tokens of the answer, as far as the model server reports them."),
    total_tokens: z.int(),
    estimated: z
      .boolean()
      .describe("True if the tokens are an estimate, because the model server reported none or implausible numbers."),
    capped: z
      .boolean()
      .describe(
        "True if the reported usage was implausible. If the server reported more tokens than possible, these are the possible maximum. If it reported fewer than it delivered, these are `estimated`.",
      ),
    from_cache: z.boolean().describe("True if the answer came from the response cache, without a model."),
    cost: z.number().nullable().describe("Cost in USD. null if the model has no price or the request was refused."),
    upstream: z.string().nullable().describe("Model server that answered. null if none did."),
    attempts: z.int().describe("Number of attempts at model servers."),
    queue_ms: milliseconds.describe("Milliseconds in the queue, before the request was sent."),
    first_token_ms: firstTokenMs,
    duration_ms: milliseconds.describe("Total milliseconds until the end."),
    tokens_per_second: speed,
  })
  .meta({ id: "Request" });

const stepShape = z
  .object({
    server: z
      .int()
      .nullable()
      .describe("Number of the model server within this trail, from 1. null if the step concerns no server."),
    model: z.string().describe("Tried model: the requested one or a fallback."),
    result: z
      .enum(stepResults)
      .describe(
        "`answered`: the server accepted the request. `refused`: it answered with an error. `timed_out`: it did not answer in time. `unreachable`: the connection failed. `broke_off`: the answer ended early or was unreadable. `no_room`: the server accepted the request, but the gateway or its node had no memory for more of the answer. `cancelled`: the client disconnected or the server stopped. `queue_full` and `queue_timeout`: no slot was free, so no server was asked. `resting`: not asked, after failures. `away`: not asked, because it is not connected or draining. `not_retried`: not asked, because too many requests for the model are retries already. `overflowed`: the model's overflow policy chose a server that normally comes last. `masked`, `blocked` and `noted`: a guardrail found something in the request or the answer. `over_quota`: not asked, because it costs more than the rest of a quota.",
      ),
    status: z.int().nullable().describe("HTTP status of the server's answer, if it was an error."),
    started_ms: milliseconds.describe("Milliseconds from the start of the request."),
    duration_ms: milliseconds.describe("Milliseconds that the step took."),
    upstream: z.string().nullable().describe("Name of the model server. Only for operators, otherwise null."),
    upstream_model: z
      .string()
      .nullable()
      .describe("Id of the model at the server. Only for operators, otherwise null."),
    reason: z
      .string()
      .nullable()
      .describe(
        "Shortened error message of the server, or description of the fault, without credentials and without parts of the request. Only for operators, otherwise null.",
      ),
    left_out: z
      .int()
      .describe(
        "Number of steps before this one that were not stored, because there were very many or the server's disk was full. Otherwise 0.",
      ),
  })
  .meta({ id: "RequestStep" });

const counted = z.int().optional();
const usageDetails = z
  .object({
    cache_write_1h_tokens: counted.describe("Tokens written to a cache for an hour."),
    input_audio_tokens: counted,
    input_image_tokens: counted,
    output_audio_tokens: counted,
    output_image_tokens: counted,
    searches: counted.describe("Number of searches that the model server ran."),
    documents: counted.describe("Number of documents ranked or compared."),
    search_units: counted.describe("Search units that the vendor bills for them."),
    characters: counted.describe("Number of characters spoken."),
    seconds: counted.describe("Whole seconds of audio input."),
    images: counted.describe("Number of generated images."),
    bytes_in: counted.describe("Bytes of the tool's arguments as JSON."),
    bytes_out: counted.describe("Bytes of the tool's result as JSON."),
    tool_errors: counted.describe("1 if the tool marked its result as an error."),
    replayed: counted.describe(
      "1 if the answer came from the response cache. The tokens are those of the original answer.",
    ),
    served: z.array(z.string()).optional().describe("Tier, speed and region that the server reported."),
    billed: z.number().optional().describe("USD that the vendor reports to charge the operator. Only for operators."),
  })
  .meta({ id: "UsageDetails" });

export const oneRequest = requestShape
  .extend({
    usage_details: usageDetails
      .nullable()
      .describe(
        "Further usage that only some model servers report, and the bytes of a tool call. null if there is none.",
      ),
    trail: z
      .array(stepShape)
      .describe(
        "Attempts, oldest first. Empty if no model server was asked, and for failed requests from before trails existed. Of very many steps, the first and the last are stored, and the last has the number of omitted steps.",
      ),
    chat: z
      .string()
      .nullable()
      .describe(
        "Id of the stored chat completion of the request. null if none is stored or the caller may not read it.",
      ),
    tool_content: z
      .object({
        arguments: z.string().describe("Arguments of the tool as JSON, cut if they are long."),
        result: z.string().describe("Result of the tool as JSON, cut if it is long."),
      })
      .nullable()
      .describe(
        "Content of a tool call, if `tools.record` stores it. null if none is stored or the caller may not read it.",
      ),
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
    // `nanoUsd` is a whole number, so the conversion to USD yields the exact decimal.
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

/** Returns the details of a request's usage. Operators also get the amount that the vendor charged. */
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

/** Returns the attempt log. A record without an attempt log had a single attempt, at the record's upstream. */
function trailOf({ trail, upstream, model, outcome, queueMs, durationMs }: UsageRecord): Trail {
  if (trail !== undefined) return trail;
  if (upstream === null) return [];
  const times = { startedMs: queueMs, durationMs: Math.max(0, durationMs - queueMs) };
  const result = outcome === "failed" ? "broke_off" : "answered";
  return [{ upstream, upstreamModel: null, model, result, status: null, reason: null, ...times }];
}

/**
 * Returns the JSON of the attempt log. Operators also get the names of upstreams and models, and the error
 * messages.
 */
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
