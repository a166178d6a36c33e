// Shapes of traffic for the simulation, and where their figures come from.
import type { Piece } from "./replica.ts";

/** One request of a session: what its prompt adds to the one before, and how long its answer is. */
export interface Turn {
  added: readonly Piece[];
  answer: Piece;
  /** Milliseconds from the end of the answer before. */
  pauseMs: number;
}

export interface Session {
  turns: readonly Turn[];
  startMs: number;
  account: string;
}

export interface Shape {
  name: string;
  what: string;
  /** Sessions that begin in a second for each replica, so that none has to wait long under an even load. */
  sessionsPerSecond: number;
  session(random: () => number, ids: Ids): Omit<Session, "startMs">;
}

/** Ids of pieces: of those that sessions share by their name, of others one each. */
export class Ids {
  readonly #shared = new Map<string, number>();
  #last = 0;

  next(): number {
    return ++this.#last;
  }

  shared(name: string): number {
    let id = this.#shared.get(name);
    if (id === undefined) {
      id = this.next();
      this.#shared.set(name, id);
    }
    return id;
  }
}

/** Exponential, as times between events that know nothing of each other. */
function exponential(mean: number, random: () => number): number {
  return -Math.log(1 - random()) * mean;
}

/** Log-normal: as lengths of texts are, many short and a few very long. `spread`: of the logarithm. */
function lengthOf(mean: number, spread: number, most: number, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const length = Math.exp(Math.log(mean) - (spread * spread) / 2 + spread * normal);
  return Math.max(1, Math.min(most, Math.round(length)));
}

/** 1 with a share of 1 in `1 + 1/2^s + …`, and so on. */
function zipf(count: number, exponent: number, random: () => number): number {
  let sum = 0;
  for (let i = 1; i <= count; i++) sum += i ** -exponent;
  let left = random() * sum;
  for (let i = 1; i <= count; i++) {
    left -= i ** -exponent;
    if (left <= 0) return i;
  }
  return count;
}

const piece = (ids: Ids, tokens: number): Piece => ({ id: ids.next(), tokens });

/** A text that many sessions begin with, in pieces: caches hold parts of it. */
function shared(ids: Ids, name: string, tokens: number): Piece[] {
  const pieces: Piece[] = [];
  for (let left = tokens; left > 0; left -= 512) {
    pieces.push({ id: ids.shared(`${name} ${left}`), tokens: Math.min(512, left) });
  }
  return pieces;
}

/** Sizes of system prompts, by their rank. */
const systemSizes = [512, 1_024, 2_048, 4_096, 8_192] as const;

export const shapes: readonly Shape[] = [
  {
    name: "chat",
    what: "conversations of people, with a history that grows and a system prompt of their app",
    sessionsPerSecond: 0.6,
    session(random, ids) {
      const app = zipf(100, 1, random);
      // 73 % of the conversations have more than one turn (CachedAttention, on ShareGPT).
      const turns = random() < 0.27 ? 1 : 2 + Math.floor(exponential(5, random));
      const system = shared(ids, `chat ${app}`, systemSizes[app % 3] ?? 512);
      return {
        account: `account ${app}`,
        turns: Array.from({ length: Math.min(turns, 40) }, (_, index) => ({
          added: [...(index === 0 ? system : []), piece(ids, lengthOf(161, 1.2, 4_000, random))],
          answer: piece(ids, lengthOf(338, 0.8, 2_000, random)),
          pauseMs: 5_000 + exponential(25_000, random),
        })),
      };
    },
  },
  {
    name: "shared",
    what: "single questions behind system prompts of 512 to 8,192 tokens, of which some are asked far more often",
    sessionsPerSecond: 3,
    session(random, ids) {
      const app = zipf(200, 1, random);
      return {
        account: `account ${app}`,
        turns: [
          {
            added: [
              ...shared(ids, `shared ${app}`, systemSizes[app % 5] ?? 512),
              piece(ids, lengthOf(300, 1, 4_000, random)),
            ],
            answer: piece(ids, lengthOf(211, 0.8, 1_000, random)),
            pauseMs: 0,
          },
        ],
      };
    },
  },
  {
    name: "agents",
    what: "agents with long tool definitions that call the model again after each tool",
    sessionsPerSecond: 0.025,
    session(random, ids) {
      const tool = zipf(20, 1, random);
      const added = [
        ...shared(ids, `tools ${tool}`, 8_192 + 512 * (tool % 16)),
        piece(ids, lengthOf(1_500, 1, 16_000, random)),
      ];
      // 3.95 turns with 7.83 calls each (Copilot coding agents).
      const calls = Math.max(1, Math.round(exponential(31, random)));
      return {
        account: `account ${Math.ceil(random() * 50)}`,
        turns: Array.from({ length: Math.min(calls, 80) }, (_, index) => ({
          added: index === 0 ? added : [piece(ids, lengthOf(1_600, 1.3, 20_000, random))],
          answer: piece(ids, lengthOf(527, 0.9, 4_000, random)),
          pauseMs: index % 8 === 0 ? exponential(60_000, random) : exponential(4_000, random),
        })),
      };
    },
  },
];

/** Sessions of the shape, as many a second as it has for one replica times `perSecond`. */
export function sessionsOf(
  shape: Shape,
  { perSecond, durationMs, random }: { perSecond: number; durationMs: number; random(): number },
): Session[] {
  const ids = new Ids();
  const sessions: Session[] = [];
  for (let startMs = 0; startMs < durationMs; ) {
    startMs += exponential(1_000 / (shape.sessionsPerSecond * perSecond), random);
    sessions.push({ ...shape.session(random, ids), startMs });
  }
  return sessions;
}

/**
 * A trace in the form that Mooncake publishes its own in: `timestamp` in milliseconds, lengths in tokens, and ids of
 * blocks of 512 tokens, each of which stands for everything before it as well. Every request is a session.
 */
export function readTrace(text: string): Session[] {
  const ids = new Ids();
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const { timestamp, input_length, output_length, hash_ids } = JSON.parse(line) as {
        timestamp: number;
        input_length: number;
        output_length: number;
        hash_ids: number[];
      };
      let left = Math.max(1, input_length);
      const added: Piece[] = [];
      for (const block of hash_ids) {
        const tokens = Math.min(512, left);
        if (tokens <= 0) break;
        added.push({ id: ids.shared(String(block)), tokens });
        left -= tokens;
      }
      const answer = { id: ids.next(), tokens: Math.max(1, output_length) };
      return { account: "all", startMs: timestamp, turns: [{ added, answer, pauseMs: 0 }] };
    });
}
