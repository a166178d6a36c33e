// Facts of a request that routing and limits need: the options of the request, and the maximum that it may use, as far
// as known before it is sent.

import { fieldError } from "../base/errors.ts";
import { type IsolatedMember, isolatedMembers } from "../domain/models/isolation.ts";
import type { Model } from "../domain/models/model.ts";
import { rulingMembers } from "../domain/models/ruling-members.ts";
import { countTexts, noTokenLimit } from "../wire/parts.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { neutralMembers } from "./dialects/neutral-members.ts";

export interface RequestFacts {
  /** Number of prompt tokens, estimated from the text of the prompt. */
  promptTokens: number;
  /** Maximum number of completion tokens of each generation. Undefined if the request sets no limit. */
  maxCompletionTokens: number | undefined;
  /** Number of generations that run in parallel. */
  width: number;
  /** Size of the whole request in bytes. A prompt without media has at most as many tokens as bytes. */
  bodyBytes: number;
  /** True if the request contains images, audio or files. Their number of tokens cannot be estimated from the text. */
  hasMedia: boolean;
}

/** Members, as JSON, that replace those of the body for every model server. The value null removes a member. */
export type Corrections = Readonly<Record<string, string | null>>;

/**
 * If both names are present, the limit in `max_completion_tokens` counts, and the older member is removed. A model
 * server that reads both members must not get two limits.
 */
const newerLimitAlone: Corrections = { max_tokens: null };

/** If the gateway itself stores an answer, the model server must not store it. */
export const notKept: Corrections = { store: "false" };

/** Byte offsets of a member in the body. They extend from the quote before its name to the end of its value. */
export interface MemberRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Facts of a body that the gateway reads. They are noted while the body is checked. What they mean depends on the
 * dialect.
 */
export interface BodyFacts {
  readonly model: string;
  /** Byte offsets of the value of `model` in the body. Both are 0 if the body was not scanned. */
  readonly modelStart: number;
  readonly modelEnd: number;
  readonly stream: boolean;
  /**
   * The option in `stream_options`: `none` if the member is missing, `usage` if it asks for usage, and `other`
   * otherwise.
   */
  readonly streamOptions: "none" | "usage" | "other";
  /** Values of `n` and `best_of`. A value is 1 if its member is missing. */
  readonly choices: number;
  readonly bestOf: number;
  /** Number of prompts in the body. */
  readonly prompts: number;
  readonly promptTokens: number;
  /**
   * Values of `max_completion_tokens` and `max_tokens`. A value is undefined if its member is missing, and null if it
   * is not a number.
   */
  readonly newerLimit: number | null | undefined;
  readonly olderLimit: number | null | undefined;
  readonly hasEmptyStop: boolean;
  readonly hasMedia: boolean;
  /** True if the request has unknown members that may limit the answer: see `neutralMembers`. */
  readonly hasOthers: boolean;
  /**
   * The members of the body that make `hasOthers` true, so that only these must be parsed. Undefined if the members
   * were not noted one by one.
   */
  readonly unknownMembers: readonly MemberRange[] | undefined;
  /**
   * Byte offsets of the end user's name and of `metadata`. Both offsets of a member are 0 if it is missing or was not
   * scanned.
   */
  readonly userStart: number;
  readonly userEnd: number;
  readonly metadataStart: number;
  readonly metadataEnd: number;
  /** Byte offsets of the template arguments. Both are 0 if the member is missing or was not scanned. */
  readonly templateStart: number;
  readonly templateEnd: number;
  /** Members of the body that keep users or caches separate at model servers. Undefined if there are none. */
  readonly isolating: readonly IsolatedMember[] | undefined;
  /** True if the client wants the completion to be stored. Undefined or null if the client does not say. */
  readonly store: boolean | null | undefined;
  /** True if the request runs in the background. Only some formats support this. */
  readonly background: boolean;
  /** True if the request refers to stored items, such as an earlier response. */
  readonly namesKept: boolean;
  /** True if the request may contain data that the gateway sealed for the client. */
  readonly maySeal: boolean;
}

/** Returns the facts of a body that has been parsed. */
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

/**
 * Returns the names of members that may limit the answer, except for the limit members that the format itself defines.
 */
export function otherMembersOf({ limitMembers }: Pick<Dialect, "limitMembers">, body: Members): string[] {
  return Object.keys(body).filter((name) => !neutralMembers.has(name) && !limitMembers.includes(name));
}

/** Matches the names of members with which servers may limit the answer or set the number of answers. */
const limitName = /tok|predict|len|max|limit|budget|num|size|word|char|count|candidate|choice|sequence|completion/i;
/**
 * Matches names for the number of answers, but only as a whole. A partial match would also find `do_sample` and
 * `repeat_penalty`, which mean something else.
 */
const widthName = /^(?:n|best_?of|(?:n_?)?(?:best|beams?|samples?|repeats?|replicas?))$/i;

/**
 * Reports whether a server may read a higher answer limit than `limit` from a member that `otherMembersOf` returns. A
 * member counts because of its name, or because its number is higher or means "no limit".
 */
export function mayOutlast(dialect: Pick<Dialect, "limitMembers">, body: Members, limit: number): boolean {
  // In these members, the value -1 means that no slot or rank of a server is chosen. It does not mean an unlimited
  // answer.
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

/**
 * Throws `invalid_request` if the token limit is above the model's context. A limit that the dialect requires is not
 * checked.
 */
export function requireContext(model: Model, { dialect, tokenLimit, tokenLimitName }: LimitedRequest): void {
  if (model.context === undefined || tokenLimit === undefined || dialect.isLimitRequired) return;
  if (tokenLimit > model.context) {
    throw fieldError(
      tokenLimitName,
      `must be at most ${model.context}, the context of \`${model.id}\` in tokens (got ${tokenLimit}).`,
    );
  }
}

/**
 * The factor covers the error of a token estimate for nearly all texts. The second number is the tokens that a template
 * adds.
 */
const [estimateMargin, templateTokens] = [1.25, 128];
/**
 * Length of the shortest useful answer in tokens. If the context has less space, the model server reports that the
 * prompt is too long.
 */
const shortestAnswer = 1_024;

/**
 * Returns a lower token limit if `limit` does not fit into the context after the prompt. Some servers refuse a limit
 * that does not fit. Returns undefined if `limit` fits, or if the context is unknown.
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

/** Returns the token limit if it is a number and does not mean "no limit". */
export function limitOf(value: number | null | undefined): number | undefined {
  return value === null || value === noTokenLimit ? undefined : value;
}

/**
 * Returns corrections that remove members whose removal changes nothing. These are an explicit "no token limit" and an
 * empty stop, which many servers refuse. Servers of the legacy endpoint read only the older name of the token limit, so
 * the newer name is replaced.
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

/** Returns undefined if the member is missing, and null if its value is not a number. */
function numberOf(value: unknown): number | null | undefined {
  return typeof value === "number" || value === undefined ? value : null;
}
