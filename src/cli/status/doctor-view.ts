// Prints the findings of `headrace doctor`, as text or JSON.

import { countLevels, type Finding, type GroupReport, type Level } from "../../doctor/finding.ts";
import { paragraph } from "../terminal/fitted-text.ts";
import { printable, type Style, type Terminal } from "../terminal/terminal.ts";

const levelWidth = "warning".length;
const widestName = 24;

const words: Readonly<Record<Level, string>> = { ok: "ok", skipped: "skipped", warning: "warning", failure: "FAILURE" };

/**
 * Returns the lines of a group of findings. At a terminal, lines are wrapped; elsewhere each finding is one line, for
 * searching.
 */
export function groupLines({ title, findings }: GroupReport, terminal: Terminal): string[] {
  const { out, stdout } = terminal;
  const columns = stdout.isTTY ? (stdout.columns ?? 80) : undefined;
  const nameWidth = Math.min(widestName, Math.max(...findings.map(({ name }) => Bun.stringWidth(printable(name)))));
  const indent = 2 + levelWidth + 2 + nameWidth + 2;
  return [
    out.bold(title),
    ...findings.flatMap((finding) => {
      const { name, level, found, remedy, sent } = finding;
      const head = `  ${coloured(level, out)}  ${out.bold(printable(name).padEnd(nameWidth))}  `;
      const overlong = Math.max(0, Bun.stringWidth(printable(name)) - nameWidth);
      const lines = paragraph(printable(found), columns, indent, overlong);
      const more = [
        ...(sent !== undefined && level === "failure" ? paragraph(`Sent: ${printable(sent)}`, columns, indent) : []),
        ...(remedy === undefined ? [] : paragraph(`Fix: ${printable(remedy)}`, columns, indent)),
      ];
      const margin = " ".repeat(indent);
      return [head + (lines[0] ?? ""), ...[...lines.slice(1), ...more].map((line) => margin + line)];
    }),
  ];
}

function coloured(level: Level, { green, yellow, red, dim }: Style): string {
  const paint = { ok: green, skipped: dim, warning: yellow, failure: red }[level];
  return paint(words[level].padEnd(levelWidth));
}

/** Returns a summary such as `31 ok, 2 warnings, 1 failure`. */
export function summaryLine(reports: readonly GroupReport[], seconds: number): string {
  const { ok, warning, failure, skipped } = countLevels(reports);
  const parts = [
    `${ok} ok`,
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    `${warning} warning${warning === 1 ? "" : "s"}`,
    `${failure} failure${failure === 1 ? "" : "s"}`,
  ];
  return `${parts.join(", ")} (${seconds.toFixed(1)} s)`;
}

export function failedNames(reports: readonly GroupReport[]): string[] {
  const failed = reports.flatMap(({ findings }) => findings.filter(({ level }) => level === "failure"));
  return [...new Set(failed.map(({ name }) => printable(name)))];
}

export function findingsAsJson(reports: readonly GroupReport[]): Record<string, unknown> {
  const { ok, warning, failure, skipped } = countLevels(reports);
  return {
    ok: failure === 0,
    counts: { ok, skipped, warnings: warning, failures: failure },
    checks: reports.flatMap(({ title, findings }) => findings.map((finding) => checkAsJson(title, finding))),
  };
}

function checkAsJson(group: string, { name, level, found, remedy, sent }: Finding): Record<string, unknown> {
  return { group, name, status: level, found, remedy: remedy ?? null, ...(sent === undefined ? {} : { sent }) };
}

const patienceMs = 500;

/** Shows the names of slow checks in one line that is redrawn, and removed at the end. */
export class WaitingLine {
  readonly #terminal: Terminal;
  #names: readonly string[] = [];
  #isShown = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    if (!terminal.interactive) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, patienceMs);
  }

  show(names: readonly string[]): void {
    this.#names = names;
    if (this.#terminal.interactive && this.#timer === undefined) this.#draw();
  }

  /** Removes the line so that other lines can be printed. The next change draws the line again. */
  clear(): void {
    if (this.#isShown) this.#terminal.stderr.write("\r\x1b[2K");
    this.#isShown = false;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#names = [];
    this.clear();
  }

  #draw(): void {
    this.clear();
    if (this.#names.length === 0) return;
    const { stderr, err } = this.#terminal;
    const text = printable(`Looking at ${[...new Set(this.#names)].join(", ")}`);
    stderr.write(err.dim(text.slice(0, (stderr.columns ?? 80) - 1)));
    this.#isShown = true;
  }
}
