// The report of a run for people: in the terminal, and as the Markdown of the page in docs.
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

function textTable({ title, ...table }: Table): string[] {
  return ["", title, ...aligned(table).map((row) => `  ${row.join("  ").trimEnd()}`)];
}

/** A table in the form in which the formatter of this repository leaves it. */
function markdownTable({ title, ...table }: Table): string {
  const [head = [], ...rows] = aligned(table);
  const rule = head.map(({ length }, column) =>
    column < (table.wordColumns ?? 1) ? "-".repeat(length) : `${"-".repeat(length - 1)}:`,
  );
  return [`### ${title}`, "", ...[head, rule, ...rows].map((row) => `| ${row.join(" | ")} |`)].join("\n");
}

/** Cells of equal width in each column, words to the left and figures to the right; the head comes first. */
function aligned({ head, rows, wordColumns = 1 }: Omit<Table, "title">): string[][] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(minWidth, ...all.map((row) => (row[column] ?? "").length)));
  return all.map((row) =>
    widths.map((width, column) =>
      column < wordColumns ? (row[column] ?? "").padEnd(width) : (row[column] ?? "").padStart(width),
    ),
  );
}

/** Least width of a rule in Markdown. */
const minWidth = 3;
