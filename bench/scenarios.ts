// The scenarios: what is asked of each target, and how often at once.
import type { StreamPlan } from "./workload.ts";

export interface Scenario {
  name: string;
  title: string;
  connections: number;
  /** The unit by which costs are counted. */
  unit: "request" | "chunk";
  /** Undefined: an answer in one piece. */
  plan(windowMs: number): StreamPlan | undefined;
  /** Whether each connection asks just once: the stream takes its own time. */
  once: boolean;
  /** Whether the mock upstream alone is measured, too: what a gateway adds is the difference. */
  direct: boolean;
  /** Bytes of a request's body; 1 KB unless said otherwise. */
  bodyBytes?: number;
}

const chat = { unit: "request", plan: () => undefined, once: false, direct: true } as const;
const chunkMs = 15;

export const chatOne: Scenario = { name: "chat-1", title: "Chat, 1 connection", connections: 1, ...chat };
export const chatMany: Scenario = { name: "chat-64", title: "Chat, 64 connections", connections: 64, ...chat };
export const streamPaced: Scenario = {
  name: "stream-paced",
  title: `Streams, 64 at once, a chunk every ${chunkMs} ms each`,
  connections: 64,
  unit: "chunk",
  // Four times as long, so that neither the request itself counts, nor what the process does now and then.
  plan: (windowMs) => ({ chunks: Math.round((4 * windowMs) / chunkMs), paceMs: chunkMs }),
  once: true,
  direct: false,
};
/**
 * The scenario to warm up with: a second of it has as many chunks as a quarter of a minute of the paced ones, and
 * streams begin and end meanwhile.
 */
export const streamShort: Scenario = {
  ...streamPaced,
  name: "stream-short",
  title: "Streams, 64 at once, 20 chunks each, one a millisecond",
  plan: () => ({ chunks: 20, paceMs: 1 }),
  once: false,
};
export const streamFull: Scenario = {
  name: "stream-full",
  title: "Streams, 8 at once, 500 chunks each at full speed",
  connections: 8,
  unit: "chunk",
  plan: () => ({ chunks: 500, paceMs: 0 }),
  once: false,
  direct: false,
};

export const coreScenarios: readonly Scenario[] = [chatOne, chatMany, streamPaced, streamFull];
