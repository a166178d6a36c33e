// The goals for the figures, and whether they are reached.
import { added, coreRatio, perChunk, perRequest, ratios, samplesOf, scalingRatio } from "./figures.ts";
import { addedFirstChunk } from "./first-chunk.ts";
import { formatRatio } from "./formats.ts";
import type { BenchResult } from "./result.ts";
import { chatMany, chatOne, streamFull, streamPaced } from "./scenarios.ts";
import type { Spread } from "./statistics.ts";
import { maxWorkers, workersRatioOf } from "./workers.ts";

export interface Goal {
  title: string;
  limit: string;
  value: string;
  met: boolean;
}

const requestRatio = 1.6;
const chunkRatio = 1.4;
const latencyRatio = 1.25;
const passedRatio = 1.15;
const translatedRatio = 2;
const idleMegabytes = 90;
const streamKilobytes = 25;
const streamCount = 9_000;
const flatWithin = 0.1;
const idleWithLauncherMegabytes = 60;
const loadMegabytes = 150;
const backWithin = 1.2;
const keysMegabytes = 200;
const longBodyBytes = 1_000_000;
const longBodyTime = 2;
const longBodyMemory = 2;
const firstChunkMs = 1;
const workersRatio = 1.2;
/** Workers that must not have to wait for the primary process. */
const workersServed = 8;
const engineShare = 0.97;
const engineFirstTokenMs = 5;

/** Those that this run has figures for. Of ratios the median over the rounds decides. */
export function goals(result: BenchResult): Goal[] {
  return [
    ...coreGoals(result),
    ...memoryGoals(result),
    ...firstChunkGoals(result),
    ...workersGoals(result),
    ...formatGoals(result),
    ...scalingGoals(result),
    ...engineGoals(result),
  ];
}

function coreGoals({ core }: BenchResult): Goal[] {
  // There is nothing to be compared with where nginx is not.
  if (core?.baseline !== "nginx") return [];
  const found: Goal[] = [];
  for (const { name, title } of core.targets.filter((target) => target.name === "same" || target.name === "renamed")) {
    for (const [what, scenario, figure, most] of [
      ["CPU of a request", chatMany, perRequest, requestRatio],
      ["CPU of a streamed chunk", streamPaced, perChunk, chunkRatio],
      ["added p50, 1 connection", chatOne, added(core, "p50Ms"), latencyRatio],
    ] as const) {
      const ratio = coreRatio(core, scenario.name, name, figure);
      if (ratio) found.push(ratioGoal(`${what}: ${title}`, ratio, most));
    }
  }
  const idle = core.rss.find(({ title }) => title === "Headrace")?.idle;
  if (idle != null) {
    found.push({
      title: "Resident memory, idle",
      limit: `< ${idleMegabytes} MB`,
      value: `${(idle / 1e6).toFixed(1)} MB`,
      met: idle < idleMegabytes * 1e6,
    });
  }
  return found;
}

function memoryGoals({ memory }: BenchResult): Goal[] {
  if (!memory) return [];
  const rssOf = (name: string) => memory.points.find((point) => point.name === name)?.memory.rss ?? Number.NaN;
  const idle = rssOf("idle");
  const after = rssOf("after") / idle;
  const body = memory.bodies.rssBytesEach / memory.bodies.bytes;
  return [
    megabyteGoal("Resident memory, idle, with the launcher", idle, idleWithLauncherMegabytes),
    megabyteGoal("Resident memory, 64 connections at full speed", rssOf("load"), loadMegabytes),
    {
      title: "Resident memory a minute after that, to idle",
      limit: `<= ${backWithin}x`,
      value: `${after.toFixed(2)}x`,
      met: after <= backWithin,
    },
    {
      title: "Resident memory of a body of 1 MB under way",
      limit: `<= ${longBodyMemory}x its size`,
      value: `${body.toFixed(2)}x`,
      met: body <= longBodyMemory,
    },
  ];
}

function megabyteGoal(title: string, bytes: number, most: number): Goal {
  return { title, limit: `<= ${most} MB`, value: `${(bytes / 1e6).toFixed(1)} MB`, met: bytes <= most * 1e6 };
}

function firstChunkGoals({ firstChunk }: BenchResult): Goal[] {
  if (!firstChunk) return [];
  const { median, least, most } = addedFirstChunk(firstChunk);
  return [
    {
      title: "First chunk of 64 streams that begin at once, p50",
      limit: `<= ${firstChunkMs} ms more than nginx`,
      value: `${median.toFixed(2)} ms [${least.toFixed(2)} to ${most.toFixed(2)}]`,
      met: median <= firstChunkMs,
    },
  ];
}

function formatGoals({ formats }: BenchResult): Goal[] {
  if (!formats) return [];
  return formats.targets.flatMap(({ name, title, isTranslated }) => {
    const measured = isTranslated
      ? ([
          ["CPU of a paced chunk", streamPaced, perChunk, translatedRatio, "a passed one"],
          ["CPU of a chunk at full speed", streamFull, perChunk, translatedRatio, "a passed one"],
        ] as const)
      : ([["CPU of a request", chatMany, perRequest, passedRatio, "a chat"]] as const);
    return measured.flatMap(([what, scenario, figure, most, base]) => {
      const ratio = formatRatio(formats, scenario.name, name, figure);
      return ratio ? [ratioGoal(`${what}: ${title}`, ratio, most, base)] : [];
    });
  });
}

function ratioGoal(title: string, { median, least, most }: Spread, limit: number, base = "nginx"): Goal {
  return {
    title,
    limit: `<= ${limit}x ${base}`,
    value: `${median.toFixed(2)}x [${least.toFixed(2)} to ${most.toFixed(2)}]`,
    met: median <= limit,
  };
}

function scalingGoals({ scaling, streams }: BenchResult): Goal[] {
  const found: Goal[] = [];
  const keys = scaling.find(({ name }) => name === "keys");
  const last = keys?.points.at(-1);
  const ratio = keys && last && scalingRatio(keys, last);
  if (ratio && last) {
    const percent = (value: number) => `${value >= 1 ? "+" : ""}${((value - 1) * 100).toFixed(1)} %`;
    found.push({
      title: `CPU of a request with ${last.at.toLocaleString("en")} keys, to that with ${keys.points[0]?.at}`,
      limit: `within ${flatWithin * 100} %`,
      value: `${percent(ratio.median)} [${percent(ratio.least)} to ${percent(ratio.most)}]`,
      met: ratio.median <= 1 + flatWithin,
    });
  }
  if (last?.rssBytes != null) {
    found.push(
      megabyteGoal(`Resident memory with ${last.at.toLocaleString("en")} keys in use`, last.rssBytes, keysMegabytes),
    );
  }
  found.push(...bodyGoals(scaling), ...toolGoals(scaling));
  const open = streams?.points.find((point) => point.target === "same" && point.open === streamCount);
  if (open) {
    found.push({
      title: `Resident memory of each of ${streamCount.toLocaleString("en")} idle streams`,
      limit: `<= ${streamKilobytes} KB`,
      value: `${(open.bytesPerStream / 1e3).toFixed(1)} KB`,
      met: open.bytesPerStream <= streamKilobytes * 1e3,
    });
  }
  return found;
}

function bodyGoals(scaling: BenchResult["scaling"]): Goal[] {
  const bodies = scaling.find(({ name }) => name === "bodies");
  const point = bodies?.points.find(({ target, at }) => target === "same" && at === longBodyBytes);
  const ratio = bodies && point && scalingRatio(bodies, point);
  return ratio ? [ratioGoal("CPU of a request with a body of 1 MB", ratio, longBodyTime)] : [];
}

/** A call must not cost more the more tools there are beside the one that is called. */
function toolGoals(scaling: BenchResult["scaling"]): Goal[] {
  return scaling
    .filter(({ name }) => name === "tools")
    .flatMap(({ title, points, samples, baseline }) => {
      const [few, many] = points.filter(({ series }) => series !== baseline);
      if (!few || !many) return [];
      const [base, own] = [few, many].map(({ scenario, target }) => samplesOf(samples, scenario, target));
      const ratio = ratios(own ?? [], base ?? [], perRequest);
      return [
        ratioGoal(
          `${title}: CPU with ${many.at.toLocaleString("en")} tools`,
          ratio,
          1 + flatWithin,
          `that with ${few.at}`,
        ),
      ];
    });
}

function workersGoals({ workers }: BenchResult): Goal[] {
  if (!workers) return [];
  return workers.points.flatMap((point) => {
    const goals: Goal[] = [];
    for (const [what, scenario, figure] of [
      ["a request", chatMany, perRequest],
      ["a chunk at full speed", streamFull, perChunk],
    ] as const) {
      for (const [to, title, base] of [
        ["one", `CPU of ${what} with ${point.workers} workers, all processes`, "one process"],
        ["apart", `CPU of ${what} with ${point.workers} workers, beside as many apart`, "processes apart"],
      ] as const) {
        const ratio = workersRatioOf(workers, scenario.name, point, { to, figure });
        if (ratio) goals.push(ratioGoal(title, ratio, workersRatio, base));
      }
    }
    const served = maxWorkers(point);
    if (served === undefined) return goals;
    const title = `Workers that one primary process can serve, by its share with ${point.workers}`;
    const value = served.toFixed(1);
    return [...goals, { title, limit: `>= ${workersServed}`, value, met: served >= workersServed }];
  });
}

function engineGoals({ engine }: BenchResult): Goal[] {
  return (engine ?? []).flatMap(({ chats, ratio, addedFirstTokenMs }) => {
    const at = `${chats} ${chats === 1 ? "chat" : "chats"} at once`;
    const percent = (value: number) => (value * 100).toFixed(1);
    const { median, least, most } = ratio.gateway;
    const first = addedFirstTokenMs.gateway;
    return [
      {
        title: `Built-in engine, tokens/s, ${at}`,
        limit: `>= ${engineShare * 100} % of driven directly`,
        value: `${percent(median)} % [${percent(least)} to ${percent(most)}]`,
        met: median >= engineShare,
      },
      {
        title: `Built-in engine, time to first token, ${at}`,
        limit: `<= ${engineFirstTokenMs} ms more`,
        value: `${first.median.toFixed(1)} ms [${first.least.toFixed(1)} to ${first.most.toFixed(1)}]`,
        met: first.median <= engineFirstTokenMs,
      },
    ];
  });
}
