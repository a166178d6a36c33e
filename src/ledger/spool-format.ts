// The format of the spool: frames with a checksum that contain lines of JSON, so that incomplete or damaged parts are
// detected.
import { z } from "zod";
import { environments } from "../domain/api-key.ts";
import { bookedOperations } from "../domain/models/operation.ts";
import { type TokenUsage, type UsageBegin, type UsageRecord, usageOutcomes } from "../domain/usage/usage.ts";
import type { UsageParts } from "../domain/usage/usage-parts.ts";
import { detailsSchema } from "../storage/tables/details-text.ts";
import { trailSchema } from "../storage/tables/trail-text.ts";

/** The usage of a running request at a checkpoint. */
export interface UsageProgress extends TokenUsage {
  requestId: string;
  /** Cost in nano-USD; null if unknown. */
  nanoUsd: number | null;
  /** Milliseconds since the request began, by the monotonic clock. */
  elapsedMs: number;
}

/** A line of the spool. A `settle` line needs no `begin` line. */
export type SpoolLine = { begin: UsageBegin } | { progress: UsageProgress } | { settle: UsageRecord };

const whole = z.int().nonnegative();
const beginShape = {
  requestId: z.string().min(1),
  at: whole,
  accountId: z.string(),
  keyId: z.string(),
  appId: z.string().nullable(),
  environment: z.enum(environments),
  operation: z.literal(bookedOperations),
  model: z.string(),
  stream: z.boolean(),
  // If the tags are unreadable, only they are dropped.
  tags: z.array(z.string()).optional().catch(undefined),
};
const tokenShape = { promptTokens: whole, completionTokens: whole, estimated: z.boolean() };
/** If the token parts are unreadable, only they are dropped. */
const partShape = {
  cachedTokens: whole.optional().catch(undefined),
  cacheWriteTokens: whole.optional().catch(undefined),
  reasoningTokens: whole.optional().catch(undefined),
  details: detailsSchema.optional().catch(undefined),
};
const lineSchema = z.union([
  z.object({ begin: z.object(beginShape) }),
  z.object({
    progress: z.object({
      requestId: z.string(),
      ...tokenShape,
      nanoUsd: whole.nullable(),
      elapsedMs: whole,
      ...partShape,
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
      // If the attempt log is unreadable, only it is dropped.
      trail: trailSchema.nullish().catch(undefined),
      ...partShape,
    }),
  }),
]);

/**
 * The order of values in a line (a JSON array), after the line's kind. Append new values only at the end, with a
 * default, so that older versions can read the line.
 */
const beginNames = [
  "requestId",
  "at",
  "accountId",
  "keyId",
  "appId",
  "environment",
  "operation",
  "model",
  "stream",
] as const satisfies (keyof UsageBegin)[];
const beginLineNames = [...beginNames, "tags"] as const satisfies (keyof UsageBegin)[];
/** The values of token parts. A line contains them only if it needs them or a value that comes after them. */
const partNames = [
  "cachedTokens",
  "cacheWriteTokens",
  "reasoningTokens",
  "details",
] as const satisfies (keyof UsageParts)[];
const progressNames = [
  "requestId",
  "estimated",
  "promptTokens",
  "completionTokens",
  "nanoUsd",
  "elapsedMs",
  ...partNames,
] as const satisfies (keyof UsageProgress | keyof UsageParts)[];
const settleNames = [
  ...beginNames,
  "outcome",
  "errorCode",
  "estimated",
  "capped",
  "upstream",
  "promptTokens",
  "completionTokens",
  "nanoUsd",
  "durationMs",
  "firstTokenMs",
  "queueMs",
  "trail",
  ...partNames,
  "tags",
] as const satisfies (keyof UsageRecord | keyof UsageParts)[];

const checksumLength = 8;
const lengthDigits = 8;
/** Header of a frame: `#`, checksum, space, length, newline. */
export const frameHeaderLength = 1 + checksumLength + 1 + lengthDigits + 1;
const headerPattern = new RegExp(`^#([0-9a-f]{${checksumLength}}) (\\d{${lengthDigits}})\n$`);

/** Returns the header before the lines of one write. */
export function frameHeader(lines: Uint8Array): string {
  return `#${checksum(lines)} ${String(lines.length).padStart(lengthDigits, "0")}\n`;
}

/** Returns the header at the start of `bytes`. Undefined if it is incomplete. */
export function readFrameHeader(bytes: Buffer): { checksum: string; length: number } | undefined {
  const match = headerPattern.exec(bytes.toString("latin1", 0, frameHeaderLength));
  return match ? { checksum: match[1] ?? "", length: Number(match[2]) } : undefined;
}

/** Decodes a line without its newline. Returns undefined if no known version could have written it. */
export function decodeLine(bytes: Buffer): SpoolLine | undefined {
  return parse(bytes);
}

/**
 * Returns the request id of a line; '' if unreadable. In every version, a line is an array that begins with its kind
 * and the request id.
 */
export function requestIdOf(bytes: Buffer): string {
  try {
    const said: unknown = JSON.parse(bytes.toString("utf8"));
    return Array.isArray(said) && typeof said[1] === "string" ? said[1] : "";
  } catch {
    return "";
  }
}

/** Decodes a line of the first version, which has no frames: a checksum and a JSON object. */
export function decodeOldLine(bytes: Buffer): SpoolLine | undefined {
  const json = bytes.subarray(checksumLength + 1);
  return bytes.toString("latin1", 0, checksumLength + 1) === `${checksum(json)} ` ? parse(json) : undefined;
}

function parse(json: Buffer): SpoolLine | undefined {
  try {
    const said: unknown = JSON.parse(json.toString("utf8"));
    const line = lineSchema.safeParse(Array.isArray(said) ? named(said) : said).data;
    if (line === undefined || "begin" in line) return line;
    if ("progress" in line) return { progress: withParts(line.progress) };
    const { trail, ...settle } = withParts(line.settle);
    return { settle: { ...settle, trail: trail ?? undefined } };
  } catch {
    return undefined;
  }
}

type FlatParts = { [Name in keyof UsageParts]?: UsageParts[Name] | undefined };

function withParts<Line extends FlatParts>(
  line: Line,
): Omit<Line, keyof UsageParts> & { parts: UsageParts | undefined } {
  const { cachedTokens, cacheWriteTokens = 0, reasoningTokens = 0, details, ...record } = line;
  const parts = cachedTokens === undefined ? undefined : { cachedTokens, cacheWriteTokens, reasoningTokens, details };
  return { ...record, parts };
}

function named([kind, ...values]: readonly unknown[]): unknown {
  if (kind === "b") return { begin: withNames(beginLineNames, values) };
  if (kind === "p") return { progress: withNames(progressNames, values) };
  return kind === "s" ? { settle: withNames(settleNames, values) } : undefined;
}

function withNames(names: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let i = 0; i < names.length; i++) object[names[i] ?? ""] = values[i];
  return object;
}

/** Rounds the numbers of a checkpoint to integers, as `UsageColumns` needs them. */
export function cleanProgress(progress: UsageProgress): UsageProgress {
  const { parts } = progress;
  return {
    requestId: progress.requestId,
    promptTokens: wholeOf(progress.promptTokens),
    completionTokens: wholeOf(progress.completionTokens),
    estimated: progress.estimated,
    nanoUsd: wholeOrNull(progress.nanoUsd),
    elapsedMs: wholeOf(progress.elapsedMs),
    parts: parts && {
      cachedTokens: wholeOf(parts.cachedTokens),
      cacheWriteTokens: wholeOf(parts.cacheWriteTokens),
      reasoningTokens: wholeOf(parts.reasoningTokens),
      details: parts.details,
    },
  };
}

/** Returns the record of a request whose process died. It is charged as of its last checkpoint. */
export function interruptedRecord(begin: UsageBegin, progress: UsageProgress | undefined): UsageRecord {
  return {
    ...begin,
    promptTokens: progress?.promptTokens ?? 0,
    completionTokens: progress?.completionTokens ?? 0,
    parts: progress?.parts,
    estimated: true,
    outcome: "interrupted",
    errorCode: null,
    nanoUsd: progress === undefined ? 0 : progress.nanoUsd,
    capped: false,
    upstream: null,
    durationMs: progress?.elapsedMs ?? 0,
    firstTokenMs: null,
    queueMs: 0,
  };
}

export function checksum(bytes: Uint8Array): string {
  return Bun.hash.crc32(bytes).toString(16).padStart(checksumLength, "0");
}

export function wholeOf(value: number): number {
  return value > 0 ? Math.min(Math.round(value), Number.MAX_SAFE_INTEGER) : 0;
}

function wholeOrNull(value: number | null): number | null {
  return value === null ? null : wholeOf(value);
}
