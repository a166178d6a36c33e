// Writes how much a model should think, in the form of Anthropic's API.
import type { Conversation } from "../conversation/conversation.ts";
import type { Json } from "./json.ts";

/**
 * Matches models that know only `thinking.type: "enabled"`. All later models know `adaptive`, and some know nothing
 * else (platform.claude.com/docs/en/build-with-claude/thinking, and the catalog of @ai-sdk/anthropic 4.0.105). Unknown
 * models get `adaptive`, as in Claude Code.
 */
const budgetOnly =
  /claude-(?:instant|v?2(?![\d])|3(?![\d])|(?:opus|sonnet|haiku)-4-[015](?!\d)|(?:opus|sonnet)-4[-@]\d{8})/;
/**
 * Matches the only model with a thinking budget that also knows `output_config.effort`
 * (platform.claude.com/docs/en/build-with-claude/effort).
 */
const firstWithEffort = /claude-opus-4-5(?!\d)/;
/**
 * Thinking tokens for each effort, for models that have no effort option. The lowest value is Anthropic's own minimum.
 */
const budgets: ReadonlyMap<string | undefined, number> = new Map([
  ["minimal", 1024],
  ["low", 2048],
  ["medium", 8192],
  ["high", 16_384],
  ["xhigh", 24_576],
  ["max", 31_000],
]);
const standardBudget = 8192;
/** Minimum of a thinking budget at Anthropic. */
const minBudget = 1024;
/**
 * Matches models that accept no thinking budget. The second pattern matches those of them that always think. They
 * cannot turn thinking off, so the least that they do is think at low effort (the same catalog).
 */
const adaptiveOnly = /claude-(?:fable|mythos|(?:opus|sonnet|haiku)-5-5)/;
const alwaysThinks = /claude-(?:fable|mythos|(?:opus|sonnet)-5-5)/;
/** OpenAI has an effort below Anthropic's lowest effort. */
const efforts: ReadonlyMap<string, string> = new Map([["minimal", "low"]]);

export interface WrittenThinking {
  readonly thinking?: Json | undefined;
  readonly effort?: string | undefined;
  /** True if a part of the requested thinking could not be written. */
  readonly isLess?: boolean | undefined;
}

/**
 * Writes the thinking options. `limit` is the token limit of the answer. A budget that this function chooses is at most
 * half the limit. It replaces a client's budget that is not below the limit.
 */
export function writeThinking(conversation: Conversation, model: string, limit: number): WrittenThinking {
  const { enabled, effort, budget, shown } = conversation.thinking ?? {};
  if (enabled === false || effort === "none") {
    return alwaysThinks.test(model) ? { effort: "low", isLess: true } : { thinking: { type: "disabled" } };
  }
  if (enabled === undefined && effort === undefined && budget === undefined) return {};
  const isOld = budgetOnly.test(model);
  const knowsEffort = effort !== undefined && (!isOld || firstWithEffort.test(model));
  const sentEffort = knowsEffort ? (efforts.get(effort) ?? effort) : undefined;
  if (!mayThink(conversation, isOld)) return { effort: sentEffort, isLess: true };
  const display = shown === undefined ? {} : { display: shown === "omitted" ? "omitted" : "summarized" };
  if (!isOld && (budget === undefined || adaptiveOnly.test(model))) {
    return { thinking: { type: "adaptive", ...display }, effort: sentEffort, isLess: budget !== undefined };
  }
  const half = Math.floor(limit / 2);
  // Anthropic refuses a thinking budget that is not below the token limit.
  const isLess = budget !== undefined && budget >= limit;
  const tokens = budget === undefined || isLess ? Math.min(budgets.get(effort) ?? standardBudget, half) : budget;
  if (tokens < minBudget) return { effort: sentEffort, isLess: true };
  return {
    thinking: { type: "enabled", budget_tokens: tokens, ...display },
    effort: sentEffort,
    ...(isLess && { isLess }),
  };
}

/**
 * Reports whether the request may ask for thinking. Anthropic refuses thinking if a call is forced. Its older models
 * also refuse thinking after tool results whose calls had no thinking. A client of another format cannot keep that
 * thinking.
 */
function mayThink({ turns, toolChoice }: Conversation, isOld: boolean): boolean {
  if (toolChoice?.type === "required" || toolChoice?.type === "tool") return false;
  if (!isOld || turns.at(-1)?.role !== "tool") return true;
  const last = turns.findLast((turn) => turn.role === "assistant");
  return (
    last?.parts.some(
      (part) => part.type === "reasoning" && part.proof !== undefined && part.proof.kind !== "encrypted",
    ) ?? true
  );
}
