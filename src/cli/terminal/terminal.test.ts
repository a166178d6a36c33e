// Tests colors, tables, exit codes, and the progress of long transfers.
import { describe, expect, test } from "bun:test";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { formatBytes } from "../../engines/llama/byte-size.ts";
import { SetupError } from "../../engines/llama/setup-error.ts";
import { startProgress } from "./progress.ts";
import {
  CliError,
  createTerminal,
  exitCodes,
  formatDuration,
  formatTable,
  Interrupted,
  interruptible,
  type OutputStream,
  printable,
  reportError,
} from "./terminal.ts";

class Screen implements OutputStream {
  text = "";
  isTTY: boolean;
  columns = 80;

  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }

  write(text: string): void {
    this.text += text;
  }
}

function terminalOn(isTTY: boolean, env: Record<string, string> = { LANG: "C.UTF-8" }) {
  const out = new Screen(isTTY);
  const err = new Screen(isTTY);
  return { out, err, terminal: createTerminal(out, err, env) };
}

describe("terminal colours", () => {
  const coloured = (isTTY: boolean, env: Record<string, string>) =>
    terminalOn(isTTY, env).terminal.err.red("x") !== "x";

  test("colours only a terminal, and not with NO_COLOR or on a dumb terminal", () => {
    expect(coloured(true, {})).toBe(true);
    expect(coloured(false, {})).toBe(false);
    expect(coloured(true, { NO_COLOR: "1" })).toBe(false);
    expect(coloured(true, { NO_COLOR: "" })).toBe(true);
    expect(coloured(true, { TERM: "dumb" })).toBe(false);
  });
});

test("escapes terminal commands in foreign text", () => {
  expect(printable("a\x1b[2Jb\r\n\u202ec\u009b")).toBe("a[2Jbc");
});

test("aligns wide characters in a table and leaves no trailing blanks", () => {
  const { terminal } = terminalOn(false);
  expect(
    formatTable(
      ["A", "BB"],
      [
        ["模型", "x"],
        ["y", ""],
      ],
      terminal.out,
    ),
  ).toBe("A     BB\n模型  x\ny");
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [4_636_352, "4.64 MB"],
  [12_345_678, "12.3 MB"],
  [999_600, "1.00 MB"],
  [639_000_000, "639 MB"],
  [1_830_000_000, "1.83 GB"],
])("formats %p bytes as %p", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test.each([
  [8.4, "8 s"],
  [125, "2 min 05 s"],
  [3780, "1 h 03 min"],
])("formats %p seconds as %p", (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

describe("exit codes of commands", () => {
  const report = (error: unknown) => {
    const { err, terminal } = terminalOn(false);
    return { code: reportError(error, terminal), text: err.text };
  };

  test("exits with 1 for a failure, without a stack", () => {
    expect(report(new CliError("no server"))).toEqual({ code: 1, text: "error: no server\n" });
    expect(report(new SetupError("no disk"))).toEqual({ code: 1, text: "error: no disk\n" });
  });

  test("exits with 2 for a usage error", () => {
    expect(report(new SetupError("bad name", { kind: "misuse" })).code).toBe(2);
    expect(report(new CliError("bad flag", exitCodes.usage)).code).toBe(2);
  });

  test("exits with 2 for commander's own errors, and 0 for help", async () => {
    const program = new Command("x").exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
    const unknown = await program.parseAsync(["--nope"], { from: "user" }).catch((error: unknown) => error);
    const help = await program.parseAsync(["--help"], { from: "user" }).catch((error: unknown) => error);
    expect(unknown).toBeInstanceOf(CommanderError);
    expect([report(unknown), report(help)]).toEqual([
      { code: 2, text: "" },
      { code: 0, text: "" },
    ]);
  });

  test("prints a wrong value that a command finds only while it runs", () => {
    expect(report(new InvalidArgumentError("Give a date."))).toEqual({ code: 2, text: "error: Give a date.\n" });
  });

  test("exits with 130 after Ctrl-C", () => {
    expect(report(new Interrupted("SIGINT").with("Kept."))).toEqual({ code: 130, text: "Kept.\n" });
  });

  test("exits with 1 for an unexpected error, with the stack", () => {
    const { code, text } = report(new TypeError("x is undefined"));
    expect(code).toBe(1);
    expect(text).toContain("terminal.test.ts");
  });
});

test("aborts work on a signal and waits for its cleanup", async () => {
  const before = process.listenerCount("SIGTERM");
  let tidied = false;
  const work = interruptible(async (signal) => {
    process.kill(process.pid, "SIGTERM");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    tidied = true;
    throw signal.reason;
  });
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Interrupted);
  expect(tidied).toBe(true);
  expect(process.listenerCount("SIGTERM")).toBe(before);
});

describe("progress of commands", () => {
  test("draws progress as one fitting line with share, amount, speed and remaining time", () => {
    const { err, terminal } = terminalOn(true, { LANG: "C.UTF-8", NO_COLOR: "1" });
    let nowMs = 0;
    const progress = startProgress(terminal, { totalBytes: 400_000_000, now: () => nowMs });
    progress.update(100_000_000);
    nowMs = 2_000;
    progress.update(200_000_000);
    progress.stop();
    const line = err.text.replace("\r\x1b[2K", "");
    expect(line).toBe(`${"━".repeat(17)}${"─".repeat(16)}   50 %  200 MB of 400 MB  50.0 MB/s  4 s left\n`);
    expect(line.length).toBeLessThanOrEqual(80);
  });

  test("draws progress in ASCII if needed, and only figures on a narrow terminal", () => {
    const { err, terminal } = terminalOn(true, { LANG: "C", NO_COLOR: "1" });
    err.columns = 30;
    const progress = startProgress(terminal, { totalBytes: 400 });
    progress.update(100);
    progress.stop();
    expect(err.text.replace("\r\x1b[2K", "").trimEnd().length).toBeLessThanOrEqual(29);
    expect(err.text).not.toContain("━");
  });

  test("logs progress in plain lines without control codes", () => {
    const { err, terminal } = terminalOn(false);
    const progress = startProgress(terminal, { totalBytes: 400 });
    progress.update(400);
    progress.stop();
    progress.stop();
    expect(err.text).toBe("100 %, 400 B of 400 B, 0 B/s, done\n");
  });

  test("computes the speed without earlier or discarded bytes", () => {
    const { terminal } = terminalOn(true);
    let nowMs = 0;
    const reports: number[] = [];
    const progress = startProgress(terminal, {
      totalBytes: 1000,
      now: () => nowMs,
      onReport: (report) => reports.push(report.bytesPerSecond),
    });
    progress.update(900);
    progress.update(0);
    nowMs = 1_000;
    progress.update(50);
    progress.stop();
    expect(reports).toEqual([50]);
  });

  test("prints a note apart from the progress line", () => {
    const { err, terminal } = terminalOn(true);
    const progress = startProgress(terminal, { totalBytes: 10 });
    progress.note("hello");
    progress.stop(true);
    expect(err.text).toBe("\r\x1b[2Khello\n\r\x1b[2K");
  });
});
