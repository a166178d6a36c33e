// What of a request is needed on its way: what it can cost at most, as far as that is known before it is sent, and what it asks for.

import { fieldError } from "../base/errors.ts";
import { type IsolatedMember, isolatedMembers } from "../domain/models/isolation.ts";
import type { Model } from "../domain/models/model.ts";
import { rulingMembers } from "../domain/models/ruling-members.ts";
import { countTexts, noTokenLimit } from "../wire/parts.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { neutralMembers } from "./dialects/neutral-members.ts";

export interface RequestFacts {
  /** Estimated from the text. */
  promptTokens: number;
  /** Per generation; undefined where the request sets no limit. */
  maxCompletionTokens: number | undefined;
  /** Generations side by side. */
  width: number;
  /** Bytes of the whole request: no prompt has more tokens than bytes, unless it has media. */
  bodyBytes: number;
  /** Whether it carries images, audio or files, whose tokens the text does not tell. */
  hasMedia: boolean;
}

/** Members of the body that every engine gets in another way, as JSON; null: left out. */
export type Corrections = Readonly<Record<string, string | null>>;

/** `max_completion_tokens` counts; an engine that takes the other name for it must not be told of two. */
const newerLimitAlone: Corrections = { max_tokens: null };

/** No model server keeps what the gateway answers for. */
export const notKept: Corrections = { store: "false" };

/** What a body says of what the gateway goes by, noted when it is checked; what that means in its dialect is not in it. */
export interface BodyFacts {
  readonly model: string;
  /** Offsets of its value in the bytes; both 0 where nobody looked. */
  readonly modelStart: number;
  readonly modelEnd: number;
  readonly stream: boolean;
  /** Whether they are there, and ask for usage. */
  readonly streamOptions: "none" | "usage" | "other";
  /** `n` and `best_of`; 1 where there is none. */
  readonly choices: number;
  readonly bestOf: number;
  /** How many prompts it has. */
  readonly prompts: number;
  readonly promptTokens: number;
  /** `max_completion_tokens` and `max_tokens`; undefined: not there; null: no number. */
  readonly newerLimit: number | null | undefined;
  readonly olderLimit: number | null | undefined;
  readonly hasEmptyStop: boolean;
  readonly hasMedia: boolean;
  /** True if the request has members that may limit the answer, as they are unknown here; see `neutralMembers`. */
  readonly hasOthers: boolean;
  /** Offsets of the end user's name, and of `metadata`, in the bytes; both 0 where there is none, or nobody looked. */
  readonly userStart: number;
  readonly userEnd: number;
  readonly metadataStart: number;
  readonly metadataEnd: number;
  /** The same of what it passes to the model's template. */
  readonly templateStart: number;
  readonly templateEnd: number;
  /** Those that are there; undefined where none is. */
  readonly isolating: readonly IsolatedMember[] | undefined;
  /** Whether the client wants the completion kept, where it says so. */
  readonly store: boolean | null | undefined;
  /** Whether it is to be worked on without its client, where its format has that. */
  readonly background: boolean;
  /** Whether it names what is kept here. */
  readonly namesKept: boolean;
  /** Whether anything of it may be sealed by us for its client. */
  readonly maySeal: boolean;
}

/** The facts of a body that was parsed. */
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
    hasOthers: otherMembersOf(dialect, body).length > 0,
    isolating: isolatingOf(body),
    store: typeof store === "boolean" || store === null ? store : undefined,
    background: body["background"] === true,
    namesKept: dialect.namesKept?.(body) === true,
    maySeal: true,
  };
}

type Members = Readonly<Record<string, unknown>>;

/** Names of members that may be limits of the answer, beside those of the format. */
export function otherMembersOf({ limitMembers }: Pick<Dialect, "limitMembers">, body: Members): string[] {
  return Object.keys(body).filter((name) => !neutralMembers.has(name) && !limitMembers.includes(name));
}

/** Parts of the names that servers give to limits of an answer, and to how many answers they make. */
const limitName = /tok|predict|len|max|limit|budget|num|size|word|char|count|candidate|choice|sequence|completion/i;
/** Whole names of how many answers they make, whose parts say nothing: `do_sample`, `repeat_penalty`. */
const widthName = /^(?:n|best_?of|(?:n_?)?(?:best|beams?|samples?|repeats?|replicas?))$/i;

/**
 * Reports whether a server may find a longer limit of the answer than `limit` in one of the members that `otherMembersOf` returns: by its
 * name, or as a number that is greater or means none.
 */
export function mayOutlast(dialect: Pick<Dialect, "limitMembers">, body: Members, limit: number): boolean {
  // No slot and no rank of a server.
  const isNone = (name: string) => body[name] === -1 && rulingMembers.includes(name);
  return otherMembersOf(dialect, body).some((name) => !isNone(name) && mayBeLonger(name, body[name], limit));
}

function mayBeLonger(name: string, value: unknown, limit: number): boolean {
  if (value === null || value === "") return false;
  if (typeof value === "object") {
    return Object.entries(value as Members).some(([inner, item]) =>
      mayBeLonger(Array.isArray(value) ? name : inner, item, limit),
    );
  }
  if (limitName.test(name) || widthName.test(name)) return true;
  const told = typeof value === "boolean" ? Number.NaN : Number(value);
  return told <= 0 || told > limit;
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

/** Throws `invalid_request` for a token limit that the model's context cannot hold, unless the client had to name one. */
export function requireContext(model: Model, { dialect, tokenLimit, tokenLimitName }: LimitedRequest): void {
  if (model.context === undefined || tokenLimit === undefined || dialect.isLimitRequired) return;
  if (tokenLimit > model.context) {
    throw fieldError(
      tokenLimitName,
      `must be at most ${model.context}, the context of \`${model.id}\` in tokens (got ${tokenLimit}).`,
    );
  }
}

/** An estimate from the text is off by so much at most, for nearly all texts; and what a template puts around them. */
const [estimateMargin, templateTokens] = [1.25, 128];
/** An answer that is cut shorter is of no use: where the context has less room, the model server says that the prompt is too long. */
const shortestAnswer = 1_024;

/**
 * The token limit in place of one that does not fit behind the prompt, for servers that refuse such a one. Undefined where
 * it fits, as far as anybody knows.
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

/** A token limit that counts: one that is a number, and does not say that there is none. */
export function limitOf(value: number | null | undefined): number | undefined {
  return value === null || value === noTokenLimit ? undefined : value;
}

/**
 * What means the same left out is left out, as many a server refuses it: no token limit in words of its own, an empty
 * stop. Servers of the legacy endpoint know a token limit by its older name alone, and would not be held to the newer.
 */
export function correctionsOf(
  { generates, knowsNewerLimit, isKeptUnlessTold }: Dialect,
  { newerLimit, olderLimit, hasEmptyStop, store }: BodyFacts,
): Corrections | undefined {
  if (!generates) return undefined;
  if (isKeptUnlessTold) return store === false ? undefined : notKept;
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

/** Undefined: it is not there; null: it is no number. */
function numberOf(value: unknown): number | null | undefined {
  return typeof value === "number" || value === undefined ? value : null;
}
