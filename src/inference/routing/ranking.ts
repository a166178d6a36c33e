// Ranks the deployments of a model for one request, by their load and by how much of the prompt they may have cached.
import type { Deployment } from "../../domain/models/model.ts";
import { answerWork, type DeploymentState, type RequestSize } from "./deployment-state.ts";
import type { PromptPrefix } from "./prompt-prefix.ts";

/** A deployment that may serve the request, and its state. */
export interface Candidate {
  deployment: Deployment;
  state: DeploymentState;
  /** True if the deployment is suspended. Suspended deployments are ranked last. */
  isAway: boolean;
  /** Number of characters of the prompt's beginning that the deployment was sent before. */
  warm: number;
}

interface Rank {
  readonly deployment: Deployment;
  readonly state: DeploymentState;
  readonly warm: number;
  /** 0 if the deployment is healthy, 1 if it is healthy but loaded beyond the bound, 2 if it is suspended. */
  class: number;
  /** The share of the work that this deployment should get, relative to the other deployments. */
  readonly share: number;
  /** Work of the deployment that is still open. */
  readonly work: number;
  /** Prompt tokens that the deployment would have to compute. */
  cold: number;
  cost: number;
  readonly lot: number;
}

/** The facts about the request and the gateway on which the ranking depends. */
export interface Question {
  size: RequestSize;
  /** Hashes of the prompt. Undefined if fewer than two deployments are healthy, or if the prompt cannot be cached. */
  prefix: PromptPrefix | undefined;
  /** The current time in monotonic milliseconds. */
  nowMs: number;
  /** Number of gateway processes that use these deployments, including this one. */
  gateways: number;
}

/** If the load of a deployment exceeds the mean by this factor, its cached prompts no longer matter. */
const maxAboveMean = 1.25;
/**
 * Number of requests of usual size by which the load may exceed that bound, because a few requests are never spread
 * evenly.
 */
const spare = 1;
/**
 * Cost of a prompt token that is not cached. Computing it again is a loss for all requests, while a slightly uneven
 * load costs little. The value was found by simulation (docs/routing.md).
 */
const coldTokenCost = 16;
/**
 * If two costs differ by less than this fraction of a usual request, they count as equal, so that a conversation stays
 * at its deployment.
 */
const sameCost = 0.1;
/**
 * Additional load, in requests of usual size, up to which all gateways choose the same deployment for a new
 * conversation.
 */
const worthFinding = 8;
/** If the ratio of two speeds exceeds this value, the speeds count as equal, because the difference may be chance. */
const leastPart = 0.75;
/** Fraction of its share that a deployment gets directly after a suspension. Then its share grows. */
const slowStart = 0.1;
const slowStartMs = 30_000;

/** Returns the deployments, the best first. `random` returns numbers in [0, 1). */
export function ranked(candidates: readonly Candidate[], question: Question, random: () => number): Deployment[] {
  const { size, prefix, nowMs, gateways } = question;
  const isWeighted = candidates.some(({ deployment }) => deployment.weight !== candidates[0]?.deployment.weight);
  const fastest = isWeighted ? 0 : fastestOf(candidates);
  const { usual, answer, others } = loadOf(candidates, size, nowMs);
  const isKeyed = prefix !== undefined && prefix.hashes.length > 0;
  const ranks = candidates.map(({ deployment, state, isAway, warm }): Rank => {
    const share = (isWeighted ? deployment.weight : paceShare(state, fastest)) * rampOf(state, nowMs);
    return {
      ...{ deployment, state, warm, share },
      class: isAway ? 2 : 0,
      work: state.engine.work + (others > 0 ? othersAt(state, nowMs) * usual : 0),
      cold: isKeyed ? size.promptTokens * coldPart(prefix, warm) : 0,
      cost: 0,
      lot: lotOf(isKeyed ? mixed(prefix.origin, state.lot) : random(), share),
    };
  });
  bound(ranks, size.promptTokens + answer, usual);
  if (isKeyed && gateways > 1) settle(ranks, prefix, usual);
  // If the operator has set weights, the work is spread by weight. Otherwise it is spread by measured speed, so that it
  // ends soonest.
  const own = isWeighted ? -Math.min(...ranks.map(({ cold }) => cold)) * coldTokenCost : answer;
  for (const rank of ranks) {
    const cost = (rank.work + own + rank.cold * coldTokenCost) / rank.share;
    rank.cost = isKeyed ? Math.floor(cost / (sameCost * usual)) : cost;
  }
  // If costs are equal, a random draw in proportion to the shares decides (Efraimidis and Spirakis). If there is a
  // prompt, the draw depends on the conversation, so it always has the same result (rendezvous hashing).
  ranks.sort((a, b) => a.class - b.class || a.cost - b.cost || a.lot - b.lot);
  return ranks.map(({ deployment }) => deployment);
}

/**
 * Returns the work of a usual request, the work of answering this request, and the number of requests from other
 * senders.
 */
function loadOf(candidates: readonly Candidate[], size: RequestSize, nowMs: number) {
  let [requests, work, others, answer] = [0, 0, 0, 0];
  for (const { state } of candidates) {
    requests += state.engine.requests;
    work += state.engine.work;
    others += othersAt(state, nowMs);
    answer = Math.max(answer, answerWork(state, size));
  }
  return { usual: requests > 0 ? work / requests : size.promptTokens + answer, answer, others };
}

/** Marks deployments whose load exceeds the mean by too much (consistent hashing with bounded loads). */
function bound(ranks: readonly Rank[], own: number, usual: number): void {
  let [work, shares] = [own, 0];
  for (const rank of ranks) {
    if (rank.class !== 0) continue;
    work += rank.work;
    shares += rank.share;
  }
  for (const rank of ranks) {
    const most = maxAboveMean * (work / shares) * rank.share + spare * usual;
    if (rank.class === 0 && rank.work > most) rank.class = 1;
  }
}

/**
 * Makes all gateways choose the same deployment for a conversation that began at another gateway. The choice depends
 * only on the prompt's beginning. It prefers deployments that may have cached most of the prompt.
 */
function settle(ranks: readonly Rank[], prefix: PromptPrefix, usual: number): void {
  const open = ranks.filter((rank) => rank.class === 0);
  const warmest = Math.max(0, ...open.map(({ warm }) => warm));
  if (warmest > prefix.originEnd) return;
  const key = warmest > 0 ? prefix.origin : (prefix.hashes[0] ?? 0);
  let best: Rank | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const rank of open) {
    const lot = lotOf(mixed(key, rank.state.lot), rank.share);
    if (rank.warm < warmest || lot >= least) continue;
    best = rank;
    least = lot;
  }
  if (best) best.cold = prefix.continues ? 0 : Math.max(0, best.cold - (worthFinding * usual) / coldTokenCost);
}

/**
 * Returns the fraction of the prompt that is not cached. It assumes that tokens are spread evenly over the characters.
 */
export function coldPart({ length }: PromptPrefix, warm: number): number {
  return length === 0 ? 1 : Math.max(0, 1 - warm / length);
}

function othersAt({ engine }: DeploymentState, nowMs: number): number {
  return engine.saidUntilMs > nowMs ? engine.others : 0;
}

function fastestOf(candidates: readonly Candidate[]): number {
  let fastest = 0;
  for (const { state } of candidates) fastest = Math.max(fastest, state.pace);
  return fastest;
}

/** Returns the speed relative to the fastest deployment. Returns 1 if the speed is unknown. */
function paceShare({ pace }: DeploymentState, fastest: number): number {
  const part = pace === 0 ? 1 : pace / fastest;
  return part > leastPart ? 1 : part;
}

function rampOf({ engine, health }: DeploymentState, nowMs: number): number {
  const wellMs = nowMs - Math.max(engine.health.recoveredMs, health.recoveredMs);
  return wellMs >= slowStartMs ? 1 : Math.max(slowStart, wellMs / slowStartMs);
}

/**
 * Returns a score for a weighted random draw. The deployment with the lowest score is drawn. A deployment is drawn in
 * proportion to its share.
 */
function lotOf(part: number, share: number): number {
  return -Math.log(1 - part) / share;
}

/** Returns a pseudo-random number in [0, 1) that depends on both numbers. */
function mixed(one: number, other: number): number {
  let bits = Math.imul(one ^ other, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}
