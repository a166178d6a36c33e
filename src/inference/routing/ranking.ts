// Ranks the deployments of a model for one request, by the work of each and by how much of the prompt is warm there.
import type { Deployment } from "../../domain/models/model.ts";
import { answerWork, type DeploymentState, type RequestSize } from "./deployment-state.ts";
import type { PromptPrefix } from "./prompt-prefix.ts";

/** A deployment and its state for one request. */
export interface Candidate {
  deployment: Deployment;
  state: DeploymentState;
  /** True if suspended: it comes last in any case. */
  isAway: boolean;
  /** Characters of the prompt that it was sent before. */
  warm: number;
}

interface Rank {
  readonly deployment: Deployment;
  readonly state: DeploymentState;
  readonly warm: number;
  /** 0: healthy; 1: healthy, but loaded beyond the bound; 2: suspended. */
  class: number;
  /** The part of the work that it should have, relative to the others. */
  readonly share: number;
  /** Its open work. */
  readonly work: number;
  /** Tokens of the prompt that it would have to read. */
  cold: number;
  cost: number;
  readonly lot: number;
}

/** The request and the state that the choice depends on. */
export interface Question {
  size: RequestSize;
  /** Undefined if no deployment caches prompts, or if there is no choice. */
  prefix: PromptPrefix | undefined;
  /** Monotonic milliseconds. */
  nowMs: number;
  /** Processes that send to these deployments, including this one. */
  gateways: number;
}

/** Load, as a multiple of the mean, above which a warm prompt no longer matters. */
const maxAboveMean = 1.25;
/** Requests of usual size that are allowed beyond that bound, because few requests are never evenly spread. */
const spare = 1;
/**
 * Cost of a cold prompt token within that bound: repeated computation is lost for everyone, and a slightly uneven
 * load costs hardly anything. Found by simulation (docs/routing.md).
 */
const coldTokenCost = 16;
/**
 * Costs that differ by less than this part of a usual request count as equal, so that a conversation stays at its
 * deployment.
 */
const sameCost = 0.1;
/**
 * Requests of usual size by which the deployment of a new conversation may be worse, so that other gateways can find
 * it.
 */
const worthFinding = 8;
/** Paces whose ratio is above this count as equal: the difference is chance and the mix of requests. */
const leastPart = 0.75;
/** Part of its work that a deployment gets after a suspension; the part then grows. */
const slowStart = 0.1;
const slowStartMs = 30_000;

/** Returns the candidates, best first. `random` returns numbers from 0 up to, but not including, 1. */
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
  // With the operator's weights, work is spread by weight; otherwise by measured pace, so that it ends soonest.
  const own = isWeighted ? -Math.min(...ranks.map(({ cold }) => cold)) * coldTokenCost : answer;
  for (const rank of ranks) {
    const cost = (rank.work + own + rank.cold * coldTokenCost) / rank.share;
    rank.cost = isKeyed ? Math.floor(cost / (sameCost * usual)) : cost;
  }
  // Among equals, the share decides by lot (Efraimidis and Spirakis), or by conversation, as in rendezvous hashing.
  ranks.sort((a, b) => a.class - b.class || a.cost - b.cost || a.lot - b.lot);
  return ranks.map(({ deployment }) => deployment);
}

/**
 * `usual` is the work of a usual request, `answer` that of this request's answer, and `others` the requests of other
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

/**
 * Follows consistent hashing with bounded loads: a deployment that would be loaded too far above the mean gets no more.
 */
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
 * Lets all gateways choose the same deployment for a conversation, because none knows the conversations that began at
 * another gateway. The choice depends only on the prompt's beginning, and is made among the deployments at which most
 * of the prompt is warm.
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

/** Returns the part of the prompt's tokens that is not warm. Tokens are unknown, but spread about evenly. */
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

/** A deployment with unknown pace counts as the fastest. */
function paceShare({ pace }: DeploymentState, fastest: number): number {
  const part = pace === 0 ? 1 : pace / fastest;
  return part > leastPart ? 1 : part;
}

function rampOf({ engine, health }: DeploymentState, nowMs: number): number {
  const wellMs = nowMs - Math.max(engine.health.recoveredMs, health.recoveredMs);
  return wellMs >= slowStartMs ? 1 : Math.max(slowStart, wellMs / slowStartMs);
}

/** Returns a value of which the lowest wins: each deployment wins in proportion to its share. */
function lotOf(part: number, share: number): number {
  return -Math.log(1 - part) / share;
}

/** Returns a mixed number from 0 up to, but not including, 1, without a pattern in either argument. */
function mixed(one: number, other: number): number {
  let bits = Math.imul(one ^ other, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}
