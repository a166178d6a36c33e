// `bun bench/affinity.ts`: what routing by warm prompts saves, in a simulation with published shapes of traffic.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { policyNames } from "./affinity/policies.ts";
import { seededRandom } from "./affinity/random.ts";
import { usualReplica } from "./affinity/replica.ts";
import { type Outcome, simulate } from "./affinity/simulate.ts";
import { readTrace, type Session, sessionsOf, shapes } from "./affinity/traffic.ts";

const help = `bun bench/affinity.ts [options]
  --shapes chat,shared,agents   which traffic
  --replicas 2,4,8,16,32,64     how many replicas of the model
  --gateways 1                  gateways before them, each of which knows its own requests alone
  --minutes 10                  simulated; the first fifth is not counted
  --load 1                      traffic, as a multiple of the usual
  --cache 400000                tokens that fit into a replica's cache
  --seed 1
  --trace FILE                  a trace in the form of Mooncake's in place of the shapes; --minutes should be its length
  --policies ${policyNames.join(",")}
  --json FILE                   the figures as JSON`;

interface Result {
  traffic: string;
  replicas: number;
  gateways: number;
  policy: string;
  outcome: Outcome;
}

const { values } = parseArgs({
  options: {
    shapes: { type: "string", default: shapes.map(({ name }) => name).join(",") },
    replicas: { type: "string", default: "2,4,8,16,32,64" },
    gateways: { type: "string", default: "1" },
    minutes: { type: "string", default: "10" },
    load: { type: "string", default: "1" },
    cache: { type: "string", default: String(usualReplica.cacheTokens) },
    seed: { type: "string", default: "1" },
    trace: { type: "string" },
    policies: { type: "string", default: policyNames.join(",") },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(help);
  process.exit(0);
}
const [gateways, load, seed] = [values.gateways, values.load, values.seed].map(Number) as [number, number, number];
const durationMs = Number(values.minutes) * 60_000;
const settings = { ...usualReplica, cacheTokens: Number(values.cache) };
const trace = values.trace === undefined ? undefined : readTrace(await Bun.file(values.trace).text());

function trafficFor(replicas: number): [name: string, sessions: readonly Session[]][] {
  if (trace) return [["trace", trace]];
  const chosen = shapes.filter(({ name }) => values.shapes.split(",").includes(name));
  return chosen.map((shape) => [
    shape.name,
    sessionsOf(shape, { perSecond: replicas * load, durationMs, random: seededRandom(seed) }),
  ]);
}

const results: Result[] = [];
const policies = policyNames.filter((name) => values.policies.split(",").includes(name));
for (const replicas of values.replicas.split(",").map(Number)) {
  for (const [traffic, sessions] of trafficFor(replicas)) {
    for (const policy of policies) {
      process.stderr.write(`\r${traffic}, ${replicas} replicas, ${policy} …`.padEnd(60));
      const random = seededRandom(seed + 1);
      const outcome = simulate({ sessions, replicas, gateways, settings, durationMs, random }, policy);
      results.push({ traffic, replicas, gateways, policy, outcome });
    }
  }
}
process.stderr.write("\r".padEnd(61));
process.stderr.write("\r");
console.log(tableOf(results));
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);

function tableOf(all: readonly Result[]): string {
  const percent = (part: number) => `${(part * 100).toFixed(1)} %`;
  const rows = all.map(({ traffic, replicas, policy, outcome }) => {
    const least = all.find(
      (one) => one.traffic === traffic && one.replicas === replicas && one.policy === "least requests",
    );
    const cut = least && 1 - outcome.recomputed / least.outcome.recomputed;
    return [
      traffic,
      replicas,
      policy,
      percent(outcome.computed),
      percent(outcome.recomputed),
      cut === undefined || policy === "least requests" ? "" : `${Math.round(cut * 100)} %`,
      outcome.imbalance.toFixed(2),
      outcome.workImbalance.toFixed(2),
      Math.round(outcome.firstTokenP50),
      Math.round(outcome.firstTokenP99),
    ];
  });
  const head = [
    ...["Traffic", "Replicas", "Choice", "Prompt tokens computed", "computed again", "cut"],
    ...["Requests, p99 of max/mean", "Work, p99 of max/mean", "First token p50, ms", "p99, ms"],
  ];
  const line = (cells: readonly unknown[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
