// A made-up run, for the tests of what is made of one.
import type { Sample } from "./measure.ts";
import type { BenchResult } from "./result.ts";
import { coreScenarios } from "./scenarios.ts";

/** Processor time of a request or chunk, in microseconds, of each target in three rounds. */
const costs = { direct: [8, 8, 8], nginx: [10, 20, 10], same: [15, 30, 20], renamed: [20, 40, 30] };
const p50s = { direct: 0.1, nginx: 0.2, same: 0.22, renamed: 0.3 };

export function sampleOf(more: Partial<Sample>): Sample {
  return {
    round: 1,
    scenario: "chat-64",
    target: "same",
    requests: 1_000,
    events: 1_000,
    reads: 1_000,
    tokens: 0,
    seconds: 1,
    p50Ms: 1,
    p99Ms: 2,
    firstEventP50Ms: 3,
    errors: {},
    cpuMicros: 10_000,
    waitedMicros: 10_000,
    upstreamConnections: 0,
    ...more,
  };
}

export function sampleResult(): BenchResult {
  const samples = coreScenarios.flatMap(({ name: scenario }) =>
    Object.entries(costs).flatMap(([target, rounds]) =>
      rounds.map((cost, index) =>
        sampleOf({
          scenario,
          target,
          round: index + 1,
          cpuMicros: cost * 1_000,
          p50Ms: p50s[target as keyof typeof p50s],
        }),
      ),
    ),
  );
  const counted = { requests: 1, streams: 0, promptTokens: 1, completionTokens: 1 };
  const booked = { requests: 1, promptTokens: 1, completionTokens: 1, cost: 0, errors: 0 };
  const audit = () => ({ title: "Core", upstream: counted, booked, faults: [] });
  const keyPoint = (at: number) => ({
    at,
    series: "Headrace",
    scenario: "chat-64",
    target: `keys-${at}`,
    rssBytes: 50e6,
    firstUseMicros: 30,
  });
  return {
    at: "2026-01-02T03:04:05.000Z",
    commit: "0123abc",
    machine: { cpu: "Some <CPU>", cores: 2, kernel: "6", bun: "1", nginx: "nginx/1", loadBefore: 0, loadAfter: 1 },
    rounds: 3,
    windowMs: 1_500,
    pinned: true,
    core: {
      targets: Object.keys(costs).map((name) => ({ name, title: name })),
      baseline: "nginx",
      samples,
      rss: [
        { title: "nginx", idle: null, afterLoad: 10e6 },
        { title: "Headrace", idle: 80e6, afterLoad: 100e6 },
      ],
      startMs: [200, 100, 300],
      audit: audit(),
    },
    engine: null,
    scaling: [
      {
        name: "keys",
        title: "Number of keys",
        axis: "keys",
        baseline: undefined,
        points: [10, 100_000].map(keyPoint),
        samples: [sampleOf({ target: "keys-10" }), sampleOf({ target: "keys-100000", cpuMicros: 10_500 })],
        audits: [],
      },
    ],
    memory: {
      node: "v22.15.0",
      launcherBytes: 0,
      points: [
        { name: "idle", title: "Idle", memory: { rss: 58e6, pss: 45e6, dirty: 38e6 } },
        { name: "load", title: "Load", memory: { rss: 151e6, pss: 120e6, dirty: 110e6 } },
        { name: "after", title: "After", memory: { rss: 68e6, pss: 50e6, dirty: 44e6 } },
      ],
      bodies: { count: 16, bytes: 1_000_000, rssBytesEach: 1.4e6 },
      requests: 1_000,
      audit: audit(),
      errors: {},
    },
    workers: {
      points: [
        { workers: 1, target: "workers1", primaryShare: null, rssBytes: 90e6 },
        {
          ...{ workers: 2, target: "workers2", one: "workers1", apart: "apart2" },
          ...{ primaryShare: { request: 0.1, chunk: 0.05 }, rssBytes: 250e6 },
        },
      ],
      samples: [
        ["workers1", 10_000],
        ["workers2", 11_000],
        ["apart2", 8_000],
      ].flatMap(([target, cpuMicros]) =>
        ["chat-64", "stream-paced", "stream-full"].map((scenario) =>
          sampleOf({ target: String(target), scenario, cpuMicros: Number(cpuMicros) }),
        ),
      ),
      audits: [audit()],
    },
    firstChunk: {
      targets: ["nginx", "same"].map((name) => ({ name, title: name })),
      samples: [2, 2.5].map((firstEventP50Ms, index) =>
        sampleOf({ scenario: "first-chunk", target: index === 0 ? "nginx" : "same", firstEventP50Ms }),
      ),
      audit: audit(),
    },
    streams: {
      before: { same: 60e6 },
      points: [
        {
          target: "same",
          title: "Headrace",
          open: 9_000,
          rssBytes: 330e6,
          bytesPerStream: 30e3,
          request: sampleOf({}),
        },
      ],
      audit: audit(),
      faults: [],
    },
  };
}
