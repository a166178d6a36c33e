// Measures a call of a tool through `/mcp/{server}` beside the same call made to the server itself, with few tools and with many.
import { headraceSettleMs, plainSettleMs, type Surroundings } from "./core.ts";
import { audit } from "./governance.ts";
import { type Headrace, startHeadrace } from "./headrace.ts";
import { type Bench, measure, type Target, verify, warmUpInTurns } from "./measure.ts";
import { type MockUpstream, startCounting } from "./mock.ts";
import type { ScalingResult } from "./scaling.ts";
import { chatMany, chatOne, type Scenario } from "./scenarios.ts";
import { calledTool, toolCounts, toolHeaders } from "./tool-workload.ts";

const callScenarios: readonly Scenario[] = [chatOne, chatMany].map((scenario) => ({
  ...scenario,
  name: `call-${scenario.connections}`,
  title: `Calls of a tool, ${scenario.connections} ${scenario.connections === 1 ? "connection" : "connections"}`,
}));
const direct = "the server itself";
/** Who asks, by the path at the server. */
const sources = { direct: "direct", gateway: "gateway" };

/** What each number of connections costs, in a table of its own. */
export async function measureTools({ bench, options, placement, tell }: Surroundings): Promise<ScalingResult[]> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startMcpServer(placement.load));
  const headrace = stack.use(
    await startHeadrace({
      ...{ upstreamPort: bench.mock.port, prefix: placement.gateway, profileDir: options.profileDir },
      mcpServers: toolCounts.map((count) => ({
        name: serverName(count),
        url: `http://127.0.0.1:${server.port}${pathAt(sources.gateway, count)}`,
      })),
    }),
  );
  const placed = toolCounts.flatMap((count) => targetsOf(count, server, headrace));
  const targets = placed.map(({ target }) => target);
  // The upstream of a call is the server.
  const called: Bench = { ...bench, mock: server };
  tell("tools: warming up …");
  for (const target of targets) await verify(target);
  await warmUpInTurns(called, callScenarios, targets, options.warmUpPasses);
  const samples = await measure(called, {
    ...{ scenarios: callScenarios, targets, rounds: options.rounds },
    onRound: (round) => tell(`tools: round ${round} of ${options.rounds} …`),
  });
  const audits = [await audit("Tools", server, sources.gateway, headrace.booked)];
  return callScenarios.map(({ name: scenario, title }, index) => ({
    ...{ name: "tools", title, axis: `tools, ${title.split(", ")[1]}`, baseline: direct },
    points: placed.map(({ count, target }) => ({
      ...{ at: count, series: target.title, scenario, target: target.name },
      ...{ rssBytes: null, firstUseMicros: null },
    })),
    samples: samples.filter((sample) => sample.scenario === scenario),
    // Both are of one ledger.
    audits: index === 0 ? audits : [],
  }));
}

/** A server with so many tools, and the way to it. */
function targetsOf(count: number, server: MockUpstream, headrace: Headrace): { count: number; target: Target }[] {
  const name = calledTool(count);
  const call = { format: "tool", model: name, headers: toolHeaders(name), key: headrace.key } as const;
  const itself: Target = {
    ...{ ...call, name: `direct-${count}`, title: direct, port: server.port, path: pathAt(sources.direct, count) },
    ...{ pids: () => [server.pid], settleMs: plainSettleMs },
  };
  const through: Target = {
    ...{ ...call, name: `tools-${count}`, title: "Headrace", port: headrace.port },
    ...{ path: `/mcp/${serverName(count)}`, pids: headrace.pids, settleMs: headraceSettleMs },
  };
  return [itself, through].map((target) => ({ count, target }));
}

/** It counts calls as the mock counts requests. */
export function startMcpServer(prefix: readonly string[] = []): Promise<MockUpstream> {
  return startCounting(new URL("./mcp-server.ts", import.meta.url), { prefix });
}

export function pathAt(source: string, count: number): string {
  return `/${source}/${count}/mcp`;
}

function serverName(count: number): string {
  return `bench-${count}`;
}
