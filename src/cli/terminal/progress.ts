// Shows the progress of a long transfer: a redrawn line for a person, an occasional line for a log, JSON for a program.
import { formatBytes } from "../../engines/llama/byte-size.ts";
import { formatDuration, type Terminal } from "./terminal.ts";

export interface ProgressReport {
  bytes: number;
  totalBytes: number;
  bytesPerSecond: number;
  /** Undefined while no bytes arrive. */
  secondsLeft: number | undefined;
}

export interface Progress {
  update(bytes: number): void;
  /** Prints a line of text above the progress line. */
  note(line: string): void;
  /** Ends the display. The last progress line stays visible unless `clear` is true. */
  stop(clear?: boolean): void;
}

export interface ProgressOptions {
  totalBytes: number;
  /** If given, the reports go to this function and nothing is drawn. */
  onReport?: ((report: ProgressReport) => void) | undefined;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

const redrawIntervalMs = 200;
const logIntervalMs = 5_000;
const reportIntervalMs = 1_000;
// The speed is measured over this time: long enough to smooth bursts, short enough to follow a change of network.
const speedWindowMs = 6_000;

export function startProgress(terminal: Terminal, options: ProgressOptions): Progress {
  const { totalBytes, onReport, now = () => performance.now() } = options;
  const meter = new SpeedMeter(totalBytes, now);
  const drawn = onReport === undefined && terminal.interactive;
  let stopped = false;
  const erase = () => void (drawn && terminal.stderr.write("\r\x1b[2K"));
  const show = () => {
    const report = meter.report();
    if (onReport) onReport(report);
    else if (drawn) terminal.stderr.write(`\r\x1b[2K${progressLine(report, terminal)}`);
    else terminal.note(logLine(report));
  };
  const intervalMs = onReport ? reportIntervalMs : drawn ? redrawIntervalMs : logIntervalMs;
  const timer = setInterval(show, intervalMs);
  return {
    update: (bytes) => meter.record(bytes),
    note(line) {
      erase();
      terminal.note(line);
    },
    stop(clear = false) {
      if (stopped) return;
      stopped = true;
      clearInterval(timer);
      if (clear) erase();
      else show();
      if (drawn && !clear) terminal.stderr.write("\n");
    },
  };
}

/** Measures the speed over the last seconds. Bytes before the first call of `record` do not count. */
class SpeedMeter {
  readonly #totalBytes: number;
  readonly #now: () => number;
  #samples: { at: number; bytes: number }[] = [];

  constructor(totalBytes: number, now: () => number) {
    this.#totalBytes = totalBytes;
    this.#now = now;
  }

  record(bytes: number): void {
    const at = this.#now();
    const last = this.#samples.at(-1);
    // Drops the samples, because a restarted download would show a negative speed.
    if (last !== undefined && bytes < last.bytes) this.#samples = [];
    else if (last !== undefined && this.#samples.length > 1 && at - last.at < 100) this.#samples.pop();
    this.#samples.push({ at, bytes });
    while (this.#samples.length > 2 && at - (this.#samples[1]?.at ?? at) > speedWindowMs) this.#samples.shift();
  }

  report(): ProgressReport {
    const first = this.#samples[0];
    const bytes = this.#samples.at(-1)?.bytes ?? 0;
    const elapsedMs = first === undefined ? 0 : this.#now() - first.at;
    const bytesPerSecond = first === undefined || elapsedMs <= 0 ? 0 : ((bytes - first.bytes) / elapsedMs) * 1000;
    const secondsLeft = bytesPerSecond > 0 ? (this.#totalBytes - bytes) / bytesPerSecond : undefined;
    return { bytes, totalBytes: this.#totalBytes, bytesPerSecond: Math.round(bytesPerSecond), secondsLeft };
  }
}

function progressLine(report: ProgressReport, terminal: Terminal): string {
  const { dim, green } = terminal.err;
  const share = shareOf(report);
  const figures = [
    `${String(Math.floor(share * 100)).padStart(3)} %`,
    `${formatBytes(report.bytes)} of ${formatBytes(report.totalBytes)}`,
    `${formatBytes(report.bytesPerSecond)}/s`,
    remaining(report, share),
  ].join("  ");
  // The last column stays free, since a full line makes some terminals wrap.
  const columns = (terminal.stderr.columns ?? 80) - 1;
  const width = Math.min(40, columns - figures.length - 2);
  if (width < 5) return figures.slice(0, columns);
  const [full, empty] = terminal.unicode ? ["━", "─"] : ["#", "-"];
  const filled = Math.round(share * width);
  return `${green(full.repeat(filled))}${dim(empty.repeat(width - filled))}  ${figures}`;
}

function logLine(report: ProgressReport): string {
  const share = shareOf(report);
  return `${Math.floor(share * 100)} %, ${formatBytes(report.bytes)} of ${formatBytes(report.totalBytes)}, ${formatBytes(report.bytesPerSecond)}/s, ${remaining(report, share)}`;
}

function shareOf(report: ProgressReport): number {
  return report.totalBytes === 0 ? 1 : Math.min(1, report.bytes / report.totalBytes);
}

function remaining(report: ProgressReport, share: number): string {
  if (share === 1) return "done";
  return report.secondsLeft === undefined ? "waiting" : `${formatDuration(report.secondsLeft)} left`;
}
