// What a person reads of a run: in the terminal, and as the Markdown of the page in docs.
import type { CoreResult } from "./core.ts";
import type { BenchResult } from "./result.ts";
import { spread } from "./statistics.ts";
import { fixed, type Table, tables } from "./tables.ts";

export function render(result: BenchResult): string {
  return ["", ...method(result), ...tables(result).flatMap(textTable), ""].join("\n");
}

export function renderMarkdown(result: BenchResult): string {
  return [method(result).join("\n"), ...tables(result).map(markdownTable)].join("\n\n");
}

function method({ at, commit, machine, rounds, windowMs, pinned, core }: BenchResult): string[] {
  const { cpu, cores, kernel, bun, nginx, loadBefore, loadAfter } = machine;
  const build = commit === null ? "" : `, commit ${commit}`;
  return [
    `${cores} x ${cpu}, Linux ${kernel}, Bun ${bun}, ${nginx ?? "no nginx"}; ${at.slice(0, 10)}${build}; load average ${fixed(loadBefore)} before, ${fixed(loadAfter)} after.`,
    `Medians of ${rounds} interleaved ${rounds === 1 ? "round" : "rounds"} of ${fixed(windowMs / 1000)} s; ratios are of the same round, [least to most]. ` +
      (pinned ? "The gateway has one processor, load generator and mock another." : "The kernel chooses processors."),
    ...(core && pinned ? [disturbance(core)] : []),
    ...(core?.baseline === "direct"
      ? [
          "nginx is not installed (Debian: apt-get install nginx): compared with the mock upstream, which is no gateway.",
        ]
      : []),
  ];
}

/** The baseline has one thread: where it waits, others were at work on its processor. */
function disturbance({ samples, baseline, targets }: CoreResult): string {
  const waited = samples
    .filter(({ target }) => target === baseline)
    .map(({ waitedMicros, seconds }) => (waitedMicros / seconds / 1e6) * 100);
  const { median, most } = spread(waited);
  const title = targets.find(({ name }) => name === baseline)?.title ?? baseline;
  const verdict = median > noisyPercent ? "THE MACHINE WAS NOT QUIET: take the figures as a sketch" : "a quiet machine";
  return `${title} waited for its processor ${fixed(median)} % of the time, at most ${fixed(most)} % in a window: ${verdict}.`;
}

const noisyPercent = 3;

/** Columns of equal width, words to the left and figures to the right. */
function textTable({ title, head, rows, wordColumns = 1 }: Table): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        column < wordColumns ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return ["", title, ...all.map((row) => `  ${line(row)}`)];
}

function markdownTable({ title, head, rows, wordColumns = 1 }: Table): string {
  const line = (row: readonly string[]) => `| ${row.join(" | ")} |`;
  const rule = head.map((_, column) => (column < wordColumns ? "---" : "---:"));
  return [`### ${title}`, "", line(head), line(rule), ...rows.map(line)].join("\n");
}
