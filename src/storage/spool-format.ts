// The lines of the spool: a checksum and JSON, so that a torn or damaged line is known as such.
import { z } from "zod";
import { environments } from "../domain/api-key.ts";
import { type Operation, operationPaths } from "../domain/engine.ts";
import { type TokenUsage, type UsageBegin, type UsageEnd, type UsageRecord, usageOutcomes } from "../domain/usage.ts";

/** What was delivered at some moment of a request. */
export interface UsageProgress extends TokenUsage {
  requestId: string;
  /** As in `UsageEnd`. */
  nanoUsd: number | null;
  /** Milliseconds since its begin, by the monotonic clock. */
  elapsedMs: number;
}

/** `settle` stands for itself: it needs no `begin` to be understood. */
export type SpoolLine = { begin: UsageBegin } | { progress: UsageProgress } | { settle: UsageRecord };

const whole = z.int().nonnegative();
const beginShape = {
  requestId: z.string().min(1),
  at: whole,
  accountId: z.string(),
  keyId: z.string(),
  appId: z.string().nullable(),
  environment: z.enum(environments),
  operation: z.literal(Object.keys(operationPaths) as Operation[]),
  model: z.string(),
  stream: z.boolean(),
};
const tokenShape = { promptTokens: whole, completionTokens: whole, estimated: z.boolean() };
const lineSchema: z.ZodType<SpoolLine> = z.union([
  z.object({ begin: z.object(beginShape) }),
  z.object({
    progress: z.object({
      requestId: z.string(),
      ...tokenShape,
      nanoUsd: whole.nullable(),
      elapsedMs: whole,
    }),
  }),
  z.object({
    settle: z.object({
      ...beginShape,
      ...tokenShape,
      outcome: z.enum(usageOutcomes),
      errorCode: z.string().nullable(),
      nanoUsd: whole.nullable(),
      capped: z.boolean(),
      upstream: z.string().nullable(),
      durationMs: whole,
      firstTokenMs: whole.nullable(),
      queueMs: whole,
    }),
  }),
]);

const checksumLength = 8;

/** Ends in a newline: without it the line was not written whole. */
export function encodeLine(line: SpoolLine): string {
  const json = JSON.stringify(line);
  return `${checksum(json)} ${json}\n`;
}

/** Takes a line without its newline. Undefined where it is not, byte for byte, what `encodeLine` made. */
export function decodeLine(bytes: Buffer): SpoolLine | undefined {
  const json = bytes.subarray(checksumLength + 1);
  if (bytes.toString("latin1", 0, checksumLength + 1) !== `${checksum(json)} `) return undefined;
  try {
    return lineSchema.safeParse(JSON.parse(json.toString("utf8"))).data;
  } catch {
    return undefined;
  }
}

/** Only what belongs to it, in whole numbers that a column can hold: what is on the spool must never fail to be stored. */
export function cleanBegin(request: UsageBegin): UsageBegin {
  const { requestId, accountId, keyId, appId, environment, operation, model, stream } = request;
  return { requestId, at: wholeOf(request.at), accountId, keyId, appId, environment, operation, model, stream };
}

export function cleanProgress(progress: UsageProgress): UsageProgress {
  return {
    requestId: progress.requestId,
    promptTokens: wholeOf(progress.promptTokens),
    completionTokens: wholeOf(progress.completionTokens),
    estimated: progress.estimated,
    nanoUsd: wholeOrNull(progress.nanoUsd),
    elapsedMs: wholeOf(progress.elapsedMs),
  };
}

/** `begin` is clean already. */
export function recordOf(begin: UsageBegin, end: UsageEnd): UsageRecord {
  return {
    ...begin,
    promptTokens: wholeOf(end.promptTokens),
    completionTokens: wholeOf(end.completionTokens),
    estimated: end.estimated,
    outcome: end.outcome,
    errorCode: end.errorCode,
    nanoUsd: wholeOrNull(end.nanoUsd),
    capped: end.capped,
    upstream: end.upstream,
    durationMs: wholeOf(end.durationMs),
    firstTokenMs: wholeOrNull(end.firstTokenMs),
    queueMs: wholeOf(end.queueMs),
  };
}

/** The record of a request whose process died: charged with its last checkpoint. */
export function interruptedRecord(begin: UsageBegin, progress: UsageProgress | undefined): UsageRecord {
  return recordOf(begin, {
    promptTokens: progress?.promptTokens ?? 0,
    completionTokens: progress?.completionTokens ?? 0,
    estimated: true,
    outcome: "interrupted",
    errorCode: null,
    nanoUsd: progress === undefined ? 0 : progress.nanoUsd,
    capped: false,
    upstream: null,
    durationMs: progress?.elapsedMs ?? 0,
    firstTokenMs: null,
    queueMs: 0,
  });
}

function checksum(json: string | Uint8Array): string {
  return Bun.hash.crc32(json).toString(16).padStart(checksumLength, "0");
}

function wholeOf(value: number): number {
  return value > 0 ? Math.min(Math.round(value), Number.MAX_SAFE_INTEGER) : 0;
}

function wholeOrNull(value: number | null): number | null {
  return value === null ? null : wholeOf(value);
}
