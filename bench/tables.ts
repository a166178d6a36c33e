// The figures of a run as tables of text, for the terminal and for the page in docs.
import type { CoreResult } from "./core.ts";
import {
  added,
  busy,
  chunksPerRead,
  chunksPerSecond,
  coreRatio,
  costAt,
  middle,
  perChunk,
  perRequest,
  requestsPerSecond,
  samplesOf,
  scalingRatio,
} from "./figures.ts";
import { addedFirstChunk, type FirstChunkResult } from "./first-chunk.ts";
import { type FormatsResult, formatRatio, formatScenarios } from "./formats.ts";
import { goals } from "./goals.ts";
import type { IdleStreamsResult } from "./idle-streams.ts";
import type { MemoryResult } from "./memory.ts";
import type { BenchResult } from "./result.ts";
import type { ScalingResult } from "./scaling.ts";
import { chatMany, coreScenarios, type Scenario, streamFull, streamPaced } from "./scenarios.ts";
import { type Spread, spread } from "./statistics.ts";
import { maxWorkers, type WorkersResult, workersRatioOf } from "./workers.ts";

export interface Table {
  title: string;
  head: readonly string[];
  rows: readonly (readonly string[])[];
  /** Number of columns, from the first on, that are words and stand to the left; 1 unless said otherwise. */
  wordColumns?: number;
}

export function tables(result: BenchResult): Table[] {
  const { core, engine, scaling, formats, memory, firstChunk, workers, streams } = result;
  return [
    goalTable(result),
    ...(core ? [...coreScenarios.map((scenario) => scenarioTable(core, scenario)), processTable(core)] : []),
    ...(engine ? [engineTable(engine)] : []),
    ...scaling.map(scalingTable),
    ...(formats ? [formatTable(formats)] : []),
    ...(memory ? [memoryTable(memory)] : []),
    ...(firstChunk ? [firstChunkTable(firstChunk)] : []),
    ...(workers ? [workersTable(workers)] : []),
    ...(streams ? [idleStreamsTable(streams)] : []),
  ].filter(({ rows }) => rows.length > 0);
}

export function fixed(value: number | null, digits = 1): string {
  return value !== null && Number.isFinite(value) ? value.toFixed(digits) : "-";
}

/** 1,000 and more with separators. */
export function whole(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "-";
}

function goalTable(result: BenchResult): Table {
  const rows = goals(result).map(({ title, limit, value, met }) => [title, limit, value, met ? "met" : "MISSED"]);
  return { title: "Goals", head: ["Goal", "Limit", "Measured", "Result"], rows, wordColumns: 2 };
}

function scenarioTable(core: CoreResult, scenario: Scenario): Table {
  return scenario.unit === "chunk" ? streamTable(core, scenario) : chatTable(core, scenario);
}

function chatTable(core: CoreResult, { name: scenario, title, connections }: Scenario): Table {
  const addedP50 = added(core, "p50Ms");
  const rows = core.targets.map((target) => {
    const own = samplesOf(core.samples, scenario, target.name);
    const isDirect = target.name === "direct";
    return [
      target.title,
      fixed(middle(own, perRequest)),
      ratioText(coreRatio(core, scenario, target.name, perRequest)),
      whole(middle(own, requestsPerSecond)),
      percentText(middle(own, busy)),
      fixed(
        middle(own, ({ p50Ms }) => p50Ms),
        3,
      ),
      fixed(
        middle(own, ({ p99Ms }) => p99Ms),
        3,
      ),
      isDirect ? "" : fixed(middle(own, addedP50), 3),
      // Latency at many connections is the queue's: what is added to it is near nothing, and no ratio.
      ...(connections === 1 ? [ratioText(coreRatio(core, scenario, target.name, addedP50))] : []),
      isDirect ? "" : fixed(middle(own, added(core, "p99Ms")), 3),
    ];
  });
  const head = ["", "CPU us/request", `to ${core.baseline}`, "requests/s", "CPU busy", "p50 ms", "p99 ms"];
  return {
    title,
    head: [...head, "added p50 ms", ...(connections === 1 ? [`to ${core.baseline}`] : []), "added p99 ms"],
    rows,
  };
}

function streamTable(core: CoreResult, { name: scenario, title, direct }: Scenario): Table {
  const targets = core.targets.filter(({ name }) => direct || name !== "direct");
  const rows = targets.map((target) => {
    const own = samplesOf(core.samples, scenario, target.name);
    return [
      target.title,
      fixed(middle(own, perChunk), 2),
      ratioText(coreRatio(core, scenario, target.name, perChunk)),
      whole(middle(own, chunksPerSecond)),
      percentText(middle(own, busy)),
      fixed(middle(own, chunksPerRead), 2),
      fixed(
        middle(own, ({ firstEventP50Ms }) => firstEventP50Ms ?? Number.NaN),
        2,
      ),
    ];
  });
  const head = ["", "CPU us/chunk", `to ${core.baseline}`, "chunks/s", "CPU busy", "chunks/read", "first chunk p50 ms"];
  return { title, head, rows };
}

/** Microseconds of processor time. */
function formatTable(formats: FormatsResult): Table {
  const columns = formatScenarios.map(({ scenario }) => ({
    name: scenario.name,
    figure: scenario.unit === "chunk" ? perChunk : perRequest,
  }));
  const rows = formats.targets.map(({ name, title }) => [
    title,
    ...columns.flatMap(({ name: scenario, figure }) => [
      fixed(middle(samplesOf(formats.samples, scenario, name), figure), 2),
      ratioText(formatRatio(formats, scenario, name, figure)),
    ]),
  ]);
  const head = [
    "",
    "CPU us/request",
    "to chat",
    "CPU us/paced chunk",
    "to chat",
    "CPU us/chunk, full speed",
    "to chat",
  ];
  return { title: "Responses and Messages beside chat completions", head, rows };
}

function processTable({ rss, startMs }: CoreResult): Table {
  const start = spread(startMs);
  const rows = rss.map(({ title, idle, afterLoad }) => [
    title,
    megabytes(idle),
    megabytes(afterLoad),
    title === "Headrace" ? `${fixed(start.median, 0)} [${fixed(start.least, 0)} to ${fixed(start.most, 0)}]` : "",
  ]);
  return {
    title: "Processes, built-in engine off",
    head: ["", "resident MB, idle", "resident MB, after the load", "start to first answer, ms"],
    rows,
  };
}

function memoryTable({ node, launcherBytes, points, bodies }: MemoryResult): Table {
  const launcher = launcherBytes > 0 ? `which waits: ${megabytes(launcherBytes)} MB` : "which has become the server";
  const rows = points.map(({ title, memory: { rss, pss, dirty } }) => [title, ...[rss, pss, dirty].map(megabytes)]);
  const bodyTitle = `Each of ${bodies.count} bodies of ${bodies.bytes / 1e6} MB under way`;
  return {
    title: `Memory in MB, with the launcher (Node ${node}, ${launcher}), built-in engine off`,
    head: ["", "resident", "proportional", "changed"],
    rows: [...rows, [bodyTitle, fixed(bodies.rssBytesEach / 1e6, 2), "", ""]],
  };
}

function workersTable(result: WorkersResult): Table {
  const rows = result.points.map((point) => {
    const figures = [
      [chatMany, perRequest],
      [streamPaced, perChunk],
      [streamFull, perChunk],
    ] as const;
    const costs = figures.flatMap(([{ name }, figure]) => [
      fixed(middle(samplesOf(result.samples, name, point.target), figure), 2),
      ...(["one", "apart"] as const).map((to) => {
        const ratio = workersRatioOf(result, name, point, { to, figure });
        return ratio ? `${fixed(ratio.median, 2)}x [${fixed(ratio.least, 2)} to ${fixed(ratio.most, 2)}]` : "";
      }),
    ]);
    const { primaryShare } = point;
    const share = primaryShare
      ? [primaryShare.request, primaryShare.chunk].map((part) => `${fixed(part * 100, 1)} %`)
      : ["", ""];
    const served = maxWorkers(point);
    return [
      String(point.workers),
      ...costs,
      ...share,
      served === undefined ? "" : fixed(served, 1),
      megabytes(point.rssBytes),
    ];
  });
  return {
    title: "Workers: processor time in us, summed over all processes, and the part of the primary process",
    head: [
      ...["workers", "request", "to one", "to apart", "paced chunk", "to one", "to apart"],
      ...["chunk at full speed", "to one", "to apart"],
      ...["primary, request", "primary, chunk", "workers it can serve", "resident MB"],
    ],
    rows,
  };
}

function firstChunkTable(result: FirstChunkResult): Table {
  const { median, least, most } = addedFirstChunk(result);
  const rows = result.targets.map(({ name, title }) => [
    title,
    fixed(
      middle(
        result.samples.filter(({ target }) => target === name),
        ({ firstEventP50Ms }) => firstEventP50Ms ?? Number.NaN,
      ),
      2,
    ),
    name === "same" ? `${fixed(median, 2)} [${fixed(least, 2)} to ${fixed(most, 2)}]` : "",
  ]);
  return { title: "First chunk of 64 streams that begin at once", head: ["", "p50 ms", "more than nginx"], rows };
}

function engineTable(engine: NonNullable<BenchResult["engine"]>): Table {
  const rows = engine.map(({ chats, tokensPerSecond, ratio, firstTokenMs, addedFirstTokenMs }) => [
    `${chats} at once`,
    whole(tokensPerSecond.direct.median),
    whole(tokensPerSecond.gateway.median),
    ratioText(ratio.gateway, 3),
    fixed(firstTokenMs.direct.median),
    fixed(firstTokenMs.gateway.median),
    `${fixed(addedFirstTokenMs.gateway.median)} [${fixed(addedFirstTokenMs.gateway.least)} to ${fixed(addedFirstTokenMs.gateway.most)}]`,
  ]);
  return {
    title: "Built-in engine, demo model, streamed chats",
    head: [
      "",
      "tokens/s, directly",
      "tokens/s, Headrace",
      "to directly",
      "first token ms, directly",
      "first token ms",
      "added ms",
    ],
    rows,
  };
}

function scalingTable(section: ScalingResult): Table {
  const { points, samples, name, title, baseline } = section;
  const hasMemory = points.some(({ rssBytes }) => rssBytes !== null);
  const hasFirstUse = points.some(({ firstUseMicros }) => firstUseMicros !== null);
  const hasSeries = new Set(points.map(({ series }) => series)).size > 1;
  const rows = points.map((point) => {
    const own = samplesOf(samples, point.scenario, point.target);
    return [
      name === "bodies" ? bytesText(point.at) : whole(point.at),
      ...(hasSeries ? [point.series] : []),
      fixed(costAt(section, point)),
      ratioText(scalingRatio(section, point)),
      whole(middle(own, requestsPerSecond)),
      fixed(
        middle(own, ({ p50Ms }) => p50Ms),
        2,
      ),
      fixed(
        middle(own, ({ p99Ms }) => p99Ms),
        2,
      ),
      ...(hasFirstUse ? [fixed(point.firstUseMicros)] : []),
      ...(hasMemory ? [megabytes(point.rssBytes)] : []),
    ];
  });
  const head = [
    section.axis,
    ...(hasSeries ? [""] : []),
    "CPU us/request",
    baseline === undefined ? "to the first line" : `to ${baseline}`,
    "requests/s",
    "p50 ms",
    "p99 ms",
    ...(hasFirstUse ? ["CPU us, key's first use"] : []),
    ...(hasMemory ? ["resident MB"] : []),
  ];
  // Lines of the same size stand together, where they are compared.
  return { title, head, rows: hasSeries ? bySize(points, rows) : rows, wordColumns: hasSeries ? 2 : 1 };
}

function bySize(points: ScalingResult["points"], rows: readonly string[][]): string[][] {
  const order = points.map(({ at }, index) => ({ at, index })).toSorted((a, b) => a.at - b.at || a.index - b.index);
  return order.map(({ index }) => rows[index] ?? []);
}

function idleStreamsTable({ points }: IdleStreamsResult): Table {
  const rows = points.map(({ title, open, rssBytes, bytesPerStream, request }) => [
    whole(open),
    title,
    megabytes(rssBytes),
    open === 1 ? "" : fixed(bytesPerStream / 1e3),
    fixed(request.p50Ms, 3),
    fixed(request.p99Ms, 3),
    fixed(perRequest(request)),
  ]);
  const head = ["streams", "", "resident MB", "KB a stream", "request p50 ms", "p99 ms", "CPU us/request"];
  return { title: "Open, silent streams, and a request beside them", head, rows, wordColumns: 2 };
}

function ratioText(ratio: Spread | undefined, digits = 2): string {
  if (!ratio || !Number.isFinite(ratio.median)) return "";
  return `${fixed(ratio.median, digits)}x [${fixed(ratio.least, digits)} to ${fixed(ratio.most, digits)}]`;
}

function percentText(share: number): string {
  return Number.isFinite(share) ? `${Math.round(share * 100)} %` : "-";
}

function megabytes(bytes: number | null): string {
  return fixed(bytes === null ? null : bytes / 1e6);
}

export function bytesText(bytes: number): string {
  return bytes >= 1e6 ? `${bytes / 1e6} MB` : `${bytes / 1e3} KB`;
}
