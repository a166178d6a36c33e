// Facts of a request for routing and limits: the maximum that it may use, as far as known before the request is sent,
// and its options.

import { fieldError } from "../base/errors.ts";
import { type IsolatedMember, isolatedMembers } from "../domain/models/isolation.ts";
import type { Model } from "../domain/models/model.ts";
import { rulingMembers } from "../domain/models/ruling-members.ts";
import { countTexts, noTokenLimit } from "../wire/parts.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { neutralMembers } from "./dialects/neutral-members.ts";

export interface RequestFacts {
  /** Estimated from the text of the prompt. */
  promptTokens: number;
  /** Maximum completion tokens of each generation; undefined if the request sets no limit. */
  maxCompletionTokens: number | undefined;
  /** Number of parallel generations. */
  width: number;
  /** Bytes of the whole request. Without media, a prompt has at most as many tokens as bytes. */
  bodyBytes: number;
  /** True if the request carries images, audio or files, whose token counts do not follow from the text. */
  hasMedia: boolean;
}

/** Members that replace those of the body for every model server, as JSON; null removes the member. */
export type Corrections = Readonly<Record<string, string | null>>;

/** If both names are present, `max_completion_tokens` wins: a model server that reads both must not get two limits. */
const newerLimitAlone: Corrections = { max_tokens: null };

/** Model servers must not store answers that the gateway stores itself. */
export const notKept: Corrections = { store: "false" };

/** Byte offsets of a member in the body, from the quote before its name to the end of its value. */
export interface MemberRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Facts of a body that the gateway reads, noted during the check of the body. What they mean depends on the dialect.
 */
export interface BodyFacts {
  readonly model: string;
  /** Offsets of the value of `model` in the bytes; both 0 for a body that was not scanned. */
  readonly modelStart: number;
  readonly modelEnd: number;
  readonly stream: boolean;
  /** Reports whether `stream_options` is present and asks for usage. */
  readonly streamOptions: "none" | "usage" | "other";
  /** Values of `n` and `best_of`; 1 if absent. */
  readonly choices: number;
  readonly bestOf: number;
  /** Number of prompts in the body. */
  readonly prompts: number;
  readonly promptTokens: number;
  /** `max_completion_tokens` and `max_tokens`; undefined if absent, null if the value is no number. */
  readonly newerLimit: number | null | undefined;
  readonly olderLimit: number | null | undefined;
  readonly hasEmptyStop: boolean;
  readonly hasMedia: boolean;
  /** True if the request has unknown members that may limit the answer; see `neutralMembers`. */
  readonly hasOthers: boolean;
  /**
   * Body members that make `hasOthers` true, so that only these have to be parsed. Undefined if they were not noted one
   * by one.
   */
  readonly unknownMembers: readonly MemberRange[] | undefined;
  /** Offsets of the end user's name and of `metadata`; both 0 if absent or not scanned. */
  readonly userStart: number;
  readonly userEnd: number;
  readonly metadataStart: number;
  readonly metadataEnd: number;
  /** Offsets of the template arguments; both 0 if absent or not scanned. */
  readonly templateStart: number;
  readonly templateEnd: number;
  /** Members of the body that keep users or caches apart at model servers; undefined if there are none. */
  readonly isolating: readonly IsolatedMember[] | undefined;
  /** True if the client wants the completion stored; undefined or null if the client sets no preference. */
  readonly store: boolean | null | undefined;
  /** True if the request runs in the background, in a format that supports background requests. */
  readonly background: boolean;
  /** True if the request refers to stored items. */
  readonly namesKept: boolean;
  /** True if the request may contain data that the gateway sealed for the client. */
  readonly maySeal: boolean;
}

/** Returns the facts of a parsed body. */
export function factsOf(dialect: Dialect, body: Readonly<Record<string, unknown>>): BodyFacts {
  const prompt = body[dialect.promptMember];
  const { stream_options: options, store } = body;
  const [newer, older] = dialect.limitMembers;
  return {
    model: body["model"] as string,
    ...{ modelStart: 0, modelEnd: 0, userStart: 0, userEnd: 0, metadataStart: 0, metadataEnd: 0 },
    ...{ templateStart: 0, templateEnd: 0 },
    stream: dialect.task ? dialect.task.events?.isAsked(body) === true : body["stream"] === true,
    streamOptions: options === undefined ? "none" : asksForUsage(options) ? "usage" : "other",
    choices: numberOf(body["n"]) ?? 1,
    bestOf: numberOf(body["best_of"]) ?? 1,
    prompts: countTexts(prompt),
    promptTokens: dialect.promptTokens(body),
    newerLimit: numberOf(body[newer]),
    olderLimit: older === undefined ? undefined : numberOf(body[older]),
    hasEmptyStop: body["stop"] === "",
    hasMedia: dialect.hasMedia(prompt),
    unknownMembers: undefined,
    hasOthers: otherMembersOf(dialect, body).length > 0,
    isolating: isolatingOf(body),
    store: typeof store === "boolean" || store === null ? store : undefined,
    background: body["background"] === true,
    namesKept: dialect.namesKept?.(body) === true,
    maySeal: true,
  };
}

type Members = Readonly<Record<string, unknown>>;

/** Returns the names of members that may limit the answer, apart from the limit members of the format. */
export function otherMembersOf({ limitMembers }: Pick<Dialect, "limitMembers">, body: Members): string[] {
  return Object.keys(body).filter((name) => !neutralMembers.has(name) && !limitMembers.includes(name));
}

/** Matches names that servers may use for answer limits or for the number of answers. */
const limitName = /tok|predict|len|max|limit|budget|num|size|word|char|count|candidate|choice|sequence|completion/i;
/**
 * Matches whole names for the number of answers. These are not matched in part: `do_sample` and `repeat_penalty` mean
 * something else.
 */
const widthName = /^(?:n|best_?of|(?:n_?)?(?:best|beams?|samples?|repeats?|replicas?))$/i;

/**
 * Reports whether a server may read a longer answer limit than `limit` from a member that `otherMembersOf` returns. A
 * member counts because of its name, or because of a number that is greater or means no limit.
 */
export function mayOutlast(dialect: Pick<Dialect, "limitMembers">, body: Members, limit: number): boolean {
  // In these members, -1 means no slot or no rank of a server, not an unlimited answer.
  const isNone = (name: string) => body[name] === -1 && rulingMembers.includes(name);
  return otherMembersOf(dialect, body).some((name) => !isNone(name) && mayBeLonger(name, body[name], limit));
}

function mayBeLonger(name: string, value: unknown, limit: number): boolean {
  if (value === null || value === "") return false;
  if (typeof value === "object") {
    if (Array.isArray(value)) return value.some((item) => mayBeLonger(name, item, limit));
    return Object.entries(value as Members).some(([inner, item]) => mayBeLonger(inner, item, limit));
  }
  if (limitName.test(name) || widthName.test(name)) return true;
  const number = typeof value === "boolean" ? Number.NaN : Number(value);
  return number <= 0 || number > limit;
}

function isolatingOf(body: Readonly<Record<string, unknown>>): IsolatedMember[] | undefined {
  const there = [...isolatedMembers, "metadata" as const].filter((name) => body[name] !== undefined);
  return there.length === 0 ? undefined : there.map((name) => ({ name, start: 0, end: 0 }));
}

interface LimitedRequest {
  dialect: Pick<Dialect, "isLimitRequired">;
  tokenLimit: number | undefined;
  tokenLimitName: string;
}

/** Throws `invalid_request` for a token limit above the model's context, unless the dialect requires a limit. */
export function requireContext(model: Model, { dialect, tokenLimit, tokenLimitName }: LimitedRequest): void {
  if (model.context === undefined || tokenLimit === undefined || dialect.isLimitRequired) return;
  if (tokenLimit > model.context) {
    throw fieldError(
      tokenLimitName,
      `must be at most ${model.context}, the context of \`${model.id}\` in tokens (got ${tokenLimit}).`,
    );
  }
}

/** Factor that covers the error of a token estimate for nearly all texts, and the tokens that a template adds. */
const [estimateMargin, templateTokens] = [1.25, 128];
/**
 * The shortest useful answer in tokens. If the context has less space, the model server reports that the prompt is too
 * long.
 */
const shortestAnswer = 1_024;

/**
 * Returns a lower token limit if `limit` does not fit into the context after the prompt, for servers that refuse such
 * a limit. Returns undefined if `limit` fits or the context is unknown.
 */
export function fittingLimit(
  limit: number,
  { promptTokens }: Pick<RequestFacts, "promptTokens">,
  context: number | undefined,
): number | undefined {
  if (context === undefined) return undefined;
  const room = context - Math.ceil(promptTokens * estimateMargin) - templateTokens;
  const most = Math.min(context, Math.max(shortestAnswer, room));
  return limit > most ? most : undefined;
}

/** Returns a token limit that is a number and does not mean "no limit". */
export function limitOf(value: number | null | undefined): number | undefined {
  return value === null || value === noTokenLimit ? undefined : value;
}

/**
 * Removes members that mean the same when absent, because many servers refuse them: an explicit "no token limit" and
 * an empty stop. Servers of the legacy endpoint read only the older name of the token limit, so the newer name is
 * replaced.
 */
export function correctionsOf(
  { generates, knowsNewerLimit, isStoredByDefault }: Dialect,
  { newerLimit, olderLimit, hasEmptyStop, store }: BodyFacts,
): Corrections | undefined {
  if (!generates) return undefined;
  if (isStoredByDefault) return store === false ? undefined : notKept;
  const newer = limitOf(newerLimit);
  const isUsual = newerLimit !== noTokenLimit && olderLimit !== noTokenLimit && !hasEmptyStop;
  if (isUsual && (newer === undefined || knowsNewerLimit)) {
    return newer !== undefined && olderLimit !== undefined ? newerLimitAlone : undefined;
  }
  const result: Record<string, string | null> = {};
  if (newerLimit === noTokenLimit) result["max_completion_tokens"] = null;
  if (olderLimit === noTokenLimit) result["max_tokens"] = null;
  if (hasEmptyStop) result["stop"] = null;
  if (newer !== undefined && !knowsNewerLimit) {
    result["max_completion_tokens"] = null;
    result["max_tokens"] = String(newer);
  } else if (newer !== undefined && olderLimit !== undefined) result["max_tokens"] = null;
  return result;
}

export function asksForUsage(options: unknown): boolean {
  return (options as { include_usage?: unknown } | null)?.include_usage === true;
}

/** Returns undefined for an absent member and null for a value that is no number. */
function numberOf(value: unknown): number | null | undefined {
  return typeof value === "number" || value === undefined ? value : null;
}
