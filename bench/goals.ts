// The goals for the figures, and whether they are reached.
import { added, coreRatio, perChunk, perRequest, scalingRatio } from "./figures.ts";
import { formatRatio } from "./formats.ts";
import type { BenchResult } from "./result.ts";
import { chatMany, chatOne, streamFull, streamPaced } from "./scenarios.ts";
import type { Spread } from "./statistics.ts";

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
const engineShare = 0.97;
const engineFirstTokenMs = 5;

/** Those that this run has figures for. Of ratios the median over the rounds decides. */
export function goals(result: BenchResult): Goal[] {
  return [...coreGoals(result), ...formatGoals(result), ...scalingGoals(result), ...engineGoals(result)];
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
