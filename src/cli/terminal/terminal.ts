// Shared parts of the terminal: streams, colors, tables, exit codes and Ctrl-C.
import { CommanderError, InvalidArgumentError } from "commander";
import { StartError } from "../../base/errors.ts";
import { ConfigError } from "../../config/config.ts";
import { SetupError } from "../../engines/llama/setup-error.ts";
import { fittedWidths, wrapped } from "./fitted-text.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** The exit codes: 0 done, 1 failed, 2 called wrongly, 130 interrupted (128 + SIGINT, as shells count). */
export const exitCodes = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/** An expected failure of a command. The person sees `message` unchanged. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failure) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The part of `process.stdout` that commands use. */
export interface OutputStream {
  write(text: string): unknown;
  isTTY?: boolean | undefined;
  columns?: number | undefined;
}

export interface Terminal {
  /** Prints results to standard output, for scripts. */
  print(line: string): void;
  /** Prints notes and errors to standard error, for people. */
  note(line: string): void;
  /** Standard output, for answers that arrive piece by piece. */
  stdout: OutputStream;
  /** Standard error, for progress. */
  stderr: OutputStream;
  /** True if a person watches standard error, so that a line may be redrawn. */
  interactive: boolean;
  /** True if characters beyond ASCII can be shown. */
  unicode: boolean;
  /** Styles for standard output and standard error: plain text if colors are off. */
  out: Style;
  err: Style;
}

export interface Style {
  /** The width of the terminal in columns. Undefined if the stream is not a terminal. */
  readonly columns?: number | undefined;
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

export function createTerminal(stdout: OutputStream, stderr: OutputStream, env: Env): Terminal {
  const dumb = env["TERM"] === "dumb";
  // https://no-color.org: colors are off if the variable is set and not empty, whatever its value.
  const colours = !dumb && !env["NO_COLOR"];
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return {
    print: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    stdout,
    stderr,
    interactive: stderr.isTTY === true && !dumb,
    unicode: process.platform !== "linux" || /utf-?8/i.test(locale),
    out: styles(colours, stdout),
    err: styles(colours, stderr),
  };
}

function styles(colours: boolean, stream: OutputStream): Style {
  const enabled = colours && stream.isTTY === true;
  // ECMA-48, "select graphic rendition". Each style has its own end code, so styles may be nested.
  const style = (on: number, off: number) => (text: string) => (enabled ? `\x1b[${on}m${text}\x1b[${off}m` : text);
  return {
    get columns() {
      // The width is read each time, because a window may be resized.
      return stream.isTTY === true ? stream.columns : undefined;
    },
    bold: style(1, 22),
    dim: style(2, 22),
    red: style(31, 39),
    green: style(32, 39),
    yellow: style(33, 39),
  };
}

/** Removes control characters from untrusted text: the name of a model must not control the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "");
}

/**
 * Removes control characters from untrusted text of several lines. Line ends and tabs stay, and so do the joiners that
 * some scripts and emoji need.
 */
export function printableText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    /[\n\t\u200c\u200d]/.test(character) ? character : "",
  );
}

/**
 * Formats a table. Columns are as wide as their longest cell, two spaces apart; on a narrow terminal, long cells take
 * several lines. The header is bold. `figures` has the indexes of right-aligned columns. Control characters are
 * removed.
 */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  style: Style,
  figures: readonly number[] = [],
): string {
  const clean = [header, ...rows].map((row) => row.map(printable));
  const widths = fittedWidths(clean, style.columns, figures);
  const lines = clean.map((row) => {
    const cells = row.map((cell, column) => wrapped(cell, widths[column] ?? 1));
    const height = Math.max(...cells.map((cell) => cell.length));
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((cell, column) => {
          const text = cell[line] ?? "";
          const padding = " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(text)));
          return figures.includes(column) ? padding + text : text + padding;
        })
        .join("  ")
        .trimEnd(),
    );
  });
  const [first = [], ...others] = lines;
  return [...first.map((line) => style.bold(line)), ...others.flat()].join("\n");
}

/**
 * Removes columns from the rows until the table fits, in the order of `dispensable`. The first row is the header.
 * `columns` is the width of the terminal; undefined if every width fits.
 */
export function withoutColumns(
  rows: readonly (readonly string[])[],
  dispensable: readonly string[],
  columns: number | undefined,
): readonly (readonly string[])[] {
  const [header = []] = rows;
  const widths = header.map((_, column) =>
    Math.max(...rows.map((row) => Bun.stringWidth(printable(row[column] ?? "")))),
  );
  const width = widths.reduce((sum, one) => sum + one, 0) + 2 * (widths.length - 1);
  const [first, ...later] = dispensable;
  if (columns === undefined || width <= columns || first === undefined) return rows;
  const at = header.indexOf(first);
  return withoutColumns(at < 0 ? rows : rows.map((row) => row.toSpliced(at, 1)), later, columns);
}

/** Formats names in a column with their values beside them, indented by two. Control characters are removed. */
export function formatFacts(facts: readonly (readonly [name: string, value: string])[], style: Style): string {
  const nameWidth = Math.max(...facts.map(([name]) => name.length));
  const indent = nameWidth + 4;
  const valueWidth = Math.max(20, (style.columns ?? Number.POSITIVE_INFINITY) - indent);
  return facts
    .flatMap(([name, value]) => {
      const [first = "", ...more] = wrapped(printable(value), valueWidth);
      const begun = `  ${style.dim(name.padEnd(nameWidth))}  ${first}`;
      return [begun, ...more.map((line) => " ".repeat(indent) + line)].map((line) => line.trimEnd());
    })
    .join("\n");
}

/** Formats a duration: `8 s`, `2 min 05 s`, `1 h 03 min`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const two = (value: number) => String(value).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

/**
 * Milliseconds after which a second signal means "end now". One Ctrl-C may arrive twice: from the terminal, and from
 * npm or the launcher.
 */
const secondSignalMs = 1_500;

/**
 * Runs `work`. Ctrl-C or SIGTERM aborts `signal`, so that `work` can clean up. A second signal ends the process
 * immediately. `work` should reject with the reason of `signal`, an Interrupted.
 */
export async function interruptible<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  let firstMs: number | undefined;
  const onSignal = (name: NodeJS.Signals) => {
    const interrupted = new Interrupted(name);
    if (firstMs !== undefined && performance.now() - firstMs > secondSignalMs) process.exit(interrupted.exitCode);
    firstMs ??= performance.now();
    controller.abort(interrupted);
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.on(name, onSignal);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of names) process.off(name, onSignal);
  }
}

/** The error of a command that a signal ended. */
export class Interrupted extends CliError {
  readonly #signalName: string;

  constructor(signalName: string, message = "Interrupted.") {
    const exitCode = signalName === "SIGTERM" ? 143 : signalName === "SIGHUP" ? 129 : exitCodes.interrupted;
    super(message, exitCode);
    this.#signalName = signalName;
  }

  /** Returns an error for the same signal with another message. */
  with(message: string): Interrupted {
    return new Interrupted(this.#signalName, message);
  }
}

/**
 * Prints the error that ended a command, and returns the exit code: 2 for a usage error, 1 for other failures.
 * Commander has already printed its own errors; its `--help` and `--version` end with 0.
 */
export function reportError(error: unknown, terminal: Terminal): number {
  // Commander prints an InvalidArgumentError only if the parser of an argument or option throws it.
  const isPrinted = error instanceof CommanderError && !(error instanceof InvalidArgumentError);
  if (isPrinted) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  // Control characters are removed, because errors quote file names and texts of servers.
  const clean = (text: string) => text.split("\n").map(printable).join("\n");
  if (error instanceof Interrupted) {
    terminal.note(clean(error.message));
    return error.exitCode;
  }
  terminal.note(`${terminal.err.red("error:")} ${clean(textOf(error))}`);
  if (error instanceof CliError) return error.exitCode;
  if (error instanceof InvalidArgumentError) return exitCodes.usage;
  // A wrong flag or variable is a usage error; a wrong file is a failure.
  if (error instanceof ConfigError && error.problems.every(({ file }) => file === undefined)) return exitCodes.usage;
  return error instanceof SetupError && error.kind === "misuse" ? exitCodes.usage : exitCodes.failure;
}

/** An unexpected error keeps its stack for the bug report. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const foreseen = [CliError, InvalidArgumentError, SetupError, ConfigError, StartError].some(
    (kind) => error instanceof kind,
  );
  return foreseen ? error.message : (error.stack ?? error.message);
}
