// Tests the measured limit with simulated engines: the limit is found if there is one, and otherwise does not throttle.
import { describe, expect, test } from "bun:test";
import { AnswerKind } from "./answer-times.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";

/** Runs events in the order of their times, in milliseconds. */
class Simulation {
  nowMs = 0;
  readonly #events: { at: number; run(): void }[] = [];

  after(ms: number, run: () => void): void {
    const at = this.nowMs + ms;
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.at ?? 0) > at) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, { at, run });
  }

  runUntil(ms: number): void {
    for (let next = this.#events.at(-1); next && next.at <= ms; next = this.#events.at(-1)) {
      this.#events.pop();
      this.nowMs = next.at;
      next.run();
    }
    this.nowMs = ms;
  }
}

/** Returns a Mulberry32 generator, which yields the same numbers in every run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type End = "answered" | "refused";
type Upstream = (simulation: Simulation, serviceMs: () => number) => (done: (end: End) => void) => void;

/** An engine that works on `parallel` requests at once and queues the others inside, in order. */
const hiddenQueue =
  (parallel: number): Upstream =>
  (simulation, serviceMs) => {
    let busy = 0;
    const queue: (() => void)[] = [];
    return (done) => {
      const start = () => {
        busy++;
        simulation.after(serviceMs(), () => {
          busy--;
          done("answered");
          queue.shift()?.();
        });
      };
      if (busy < parallel) start();
      else queue.push(start);
    };
  };

/** An engine that answers 429 to more than `parallel` requests at once. */
const refusing =
  (parallel: number): Upstream =>
  (simulation, serviceMs) => {
    let busy = 0;
    return (done) => {
      if (busy >= parallel) return simulation.after(2, () => done("refused"));
      busy++;
      simulation.after(serviceMs(), () => {
        busy--;
        done("answered");
      });
    };
  };

const plentiful: Upstream = (simulation, serviceMs) => (done) => simulation.after(serviceMs(), () => done("answered"));

/**
 * An engine with continuous batching: every answer slows the others down, but the throughput rises, to half its highest
 * at `half`.
 */
const batching =
  (half: number): Upstream =>
  (simulation, serviceMs) => {
    const jobs = new Set<{ leftMs: number; done(end: End): void }>();
    const stepMs = 20;
    const step = () => {
      const speed = 1 / (1 + jobs.size / half);
      for (const job of jobs) {
        job.leftMs -= stepMs * speed;
        if (job.leftMs > 0) continue;
        jobs.delete(job);
        job.done("answered");
      }
      if (jobs.size > 0) simulation.after(stepMs, step);
    };
    return (done) => {
      if (jobs.size === 0) simulation.after(stepMs, step);
      jobs.add({ leftMs: serviceMs(), done });
    };
  };

/** Results of a simulation, measured after `settledSeconds`. */
interface Result {
  meanLimit: number;
  lowestLimit: number;
  /** Answers per second. */
  throughput: number;
  refusals: number;
}

interface SimulationOptions {
  clients: number;
  /** Sigma of the log-normal times. */
  spread: number;
  seconds?: number;
  /** Default: half of `seconds`. */
  settledSeconds?: number;
  seed?: number;
}

/** Simulates `clients` clients that all start at once and send again as soon as they are answered or refused. */
function simulate(upstream: Upstream, options: SimulationOptions): Result {
  const { clients, spread, seconds = 600, settledSeconds = seconds / 2, seed = 1 } = options;
  const simulation = new Simulation();
  const random = randomFrom(seed);
  /** Returns a log-normal service time with a mean of one second. */
  const serviceMs = () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return 1_000 * Math.exp(spread * normal - (spread * spread) / 2);
  };
  const send = upstream(simulation, serviceMs);
  const limit = new ConcurrencyLimit();
  let waiting = clients;
  let [inFlight, answers, refusals] = [0, 0, 0];
  const kind = limit.newKind();
  const pump = () => {
    while (waiting > 0 && inFlight < limit.value) {
      waiting--;
      const [sent, level, sentMs] = [limit.sent(), ++inFlight, simulation.nowMs];
      send((end) => {
        if (end === "answered") {
          answers++;
          const answer = { sent, inFlight: level, durationMs: simulation.nowMs - sentMs, kind };
          limit.answered(answer, inFlight >= limit.value);
          inFlight--;
        } else {
          refusals++;
          limit.refused(sent, --inFlight);
        }
        waiting++;
        pump();
      });
    }
  };
  pump();
  const limits: number[] = [];
  let earlier = { answers: 0, refusals: 0 };
  for (let second = 1; second <= seconds; second++) {
    simulation.runUntil(second * 1_000);
    if (second === settledSeconds) earlier = { answers, refusals };
    if (second > settledSeconds) limits.push(limit.value);
  }
  return {
    meanLimit: limits.reduce((sum, value) => sum + value, 0) / limits.length,
    lowestLimit: Math.min(...limits),
    throughput: (answers - earlier.answers) / (seconds - settledSeconds),
    refusals: refusals - earlier.refusals,
  };
}

const seeds = [1, 2, 3, 4, 5];
const mean = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

describe("an engine with a hidden queue", () => {
  test.each([
    [0.1, 500],
    [0.3, 500],
    [0.6, 500],
    [1, 500],
    [0.3, 100],
  ])(
    "keeps an engine with a hidden queue of four busy and its queue short: spread %p, %p clients",
    (spread, clients) => {
      const results = seeds.map((seed) => simulate(hiddenQueue(4), { clients, spread, seed }));
      // Without a limit, all clients' requests would be in flight.
      expect(mean(results.map(({ meanLimit }) => meanLimit))).toBeLessThan(24);
      // The engine's maximum is four answers per second.
      expect(mean(results.map(({ throughput }) => throughput))).toBeGreaterThan(3.7);
    },
  );

  test("finds the limit of an engine that serves one request at a time behind a hidden queue", () => {
    const results = seeds.map((seed) => simulate(hiddenQueue(1), { clients: 500, spread: 0.3, seed, seconds: 1_200 }));
    expect(mean(results.map(({ meanLimit }) => meanLimit))).toBeLessThan(12);
    expect(mean(results.map(({ throughput }) => throughput))).toBeGreaterThan(0.95);
  });
});

test.each([0, 0.6, 1])("settles at eight or nine for an engine that refuses more than eight: spread %p", (spread) => {
  for (const seed of seeds) {
    const { meanLimit, throughput, refusals } = simulate(refusing(8), { clients: 200, spread, seed });
    expect(meanLimit).toBeGreaterThan(7.5);
    expect(meanLimit).toBeLessThan(9.5);
    expect(throughput).toBeGreaterThan(7.4);
    // In 300 s with 8 answers per second, the limit tries one more request about once per round.
    expect(refusals).toBeLessThan(400);
  }
});

describe("a healthy engine", () => {
  test.each([
    [0, 200],
    [0.6, 200],
    [1, 200],
    [1.5, 200],
    [1, 1_000],
  ])("does not throttle a healthy engine, however its times vary: spread %p, %p clients", (spread, clients) => {
    for (const seed of seeds) {
      const options = { clients, spread, seed, seconds: 60, settledSeconds: 10 };
      expect(simulate(plentiful, options).lowestLimit).toBeGreaterThanOrEqual(clients);
    }
  });

  test("ignores times and queues no request if answers take less than a second", () => {
    const quick: Upstream = (simulation, serviceMs) => hiddenQueue(4)(simulation, () => serviceMs() / 250);
    const options = { clients: 500, spread: 0.3, seconds: 20, settledSeconds: 2 };
    expect(simulate(quick, options).lowestLimit).toBeGreaterThanOrEqual(500);
  });

  test("keeps nearly all of the throughput if batching slows each answer down", () => {
    for (const seed of seeds) {
      // 200 requests at once have a throughput of 200 / (1 + 200 / 32) = 27.6 answers per second.
      const { throughput } = simulate(batching(32), { clients: 200, spread: 0.6, seed, seconds: 240 });
      expect(throughput).toBeGreaterThan(27.6 * 0.85);
    }
  });

  test("restores the limit after answers became forty times as long, once a trial finds no queue", () => {
    for (const seed of seeds) {
      const changing: Upstream = (simulation, serviceMs) => (done) =>
        simulation.after(serviceMs() * (simulation.nowMs < 60_000 ? 0.5 : 20), () => done("answered"));
      const { lowestLimit } = simulate(changing, { clients: 200, spread: 0.6, seed, seconds: 600 });
      expect(lowestLimit).toBeGreaterThanOrEqual(200);
    }
  });
});

describe("single changes of the limit", () => {
  const kind = new AnswerKind();
  const answer = (sent: number) => ({ sent, inFlight: 1, durationMs: 5, kind });

  test("doubles the limit in a round of answers while all slots are taken, and keeps it while some are free", () => {
    const limit = new ConcurrencyLimit();
    const first = limit.value;
    for (let i = 0; i < first; i++) limit.answered(answer(limit.sent()), true);
    expect(limit.value).toBe(2 * first);
    for (let i = 0; i < first; i++) limit.answered(answer(limit.sent()), false);
    expect(limit.value).toBe(2 * first);
  });

  test("grows by a quarter after a second of silence, but not after trouble", () => {
    const limit = new ConcurrencyLimit();
    const first = limit.value;
    expect(limit.waitedASecond()).toBe(true);
    expect(limit.value).toBe(first * 1.25);
    limit.answered(answer(limit.sent()), false);
    expect(limit.waitedASecond()).toBe(true);
    expect(limit.value).toBe(first * 1.25);
    limit.refused(limit.sent(), 20);
    const { value } = limit;
    expect(limit.waitedASecond()).toBe(false);
    expect(limit.value).toBe(value);
    expect(new ConcurrencyLimit(4).waitedASecond()).toBe(false);
  });

  test("halves the limit at most once for the refusals of one round", () => {
    const limit = new ConcurrencyLimit();
    const round = Array.from({ length: limit.value }, () => limit.sent());
    for (const [index, sent] of round.entries()) limit.refused(sent, round.length - index - 1);
    expect(limit.value).toBe(round.length / 2);
    limit.refused(limit.sent(), 0);
    expect(limit.value).toBe(round.length / 4);
    for (let i = 0; i < 20; i++) limit.refused(limit.sent(), 0);
    expect(limit.value).toBe(1);
  });

  test("grows by about one slot a round after a refusal", () => {
    const limit = new ConcurrencyLimit();
    limit.refused(limit.sent(), 8);
    for (let i = 0; i < 10; i++) limit.refused(limit.sent(), 8);
    expect(limit.value).toBe(8);
    for (let i = 0; i < 9; i++) limit.answered(answer(limit.sent()), true);
    expect(limit.value).toBe(9);
  });

  test("keeps the operator's bound whatever the times, lowers it only on refusals, and restores it", () => {
    const limit = new ConcurrencyLimit(10);
    for (let i = 1; i <= 2_000; i++) {
      limit.answered({ sent: limit.sent(), inFlight: 1 + (i % 10), durationMs: 10 * (1 + (i % 10)), kind }, true);
    }
    expect(limit.value).toBe(10);
    limit.refused(limit.sent(), 6);
    expect(limit.value).toBe(6);
    for (let i = 0; i < 100; i++) limit.answered(answer(limit.sent()), true);
    expect(limit.value).toBe(10);
  });
});
