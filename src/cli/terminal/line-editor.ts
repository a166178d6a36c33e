// Reads lines that a person types at a terminal, with history and Ctrl-C. Nothing is stored on disk.
import { createInterface, type Interface } from "node:readline";

export type Typed =
  | { kind: "line"; text: string }
  /** Ctrl-C was typed. `empty` is true if nothing was typed before it. */
  | { kind: "interrupted"; empty: boolean }
  /** Ctrl-D was typed at an empty line, or the terminal has closed. */
  | { kind: "end" };

export interface LineEditor {
  /** Reads one line. Several lines that are pasted at once count as one text. Rejects with the reason of `signal`. */
  read(prompt: string, signal: AbortSignal): Promise<Typed>;
  /** Calls `onInterrupt` on Ctrl-C and drops all other input, until the returned function is called. */
  watch(onInterrupt: () => void): () => void;
}

/**
 * Milliseconds without input that end a paste: longer than the pause between pasted lines, shorter than between typed
 * ones.
 */
const pasteGapMs = 30;
const historySize = 1000;
const controlC = 0x03;

/**
 * Reads from the process's terminal. The prompt goes to standard error, so that readers of standard output do not see
 * it.
 */
export function createLineEditor(): LineEditor {
  let history: string[] = [];
  return {
    read(prompt, signal) {
      const lines = createInterface({
        input: process.stdin,
        output: process.stderr,
        prompt,
        historySize,
        history: [...history],
        removeHistoryDuplicates: true,
      });
      lines.on("history", (all: string[]) => {
        history = [...all];
      });
      lines.prompt();
      return readOne(lines, signal).finally(() => lines.close());
    },
    watch(onInterrupt) {
      const { stdin } = process;
      const onData = (bytes: Uint8Array) => {
        if (bytes.includes(controlC)) onInterrupt();
      };
      // In raw mode, Ctrl-C arrives as a byte and does not end the process. Typed keys are not echoed.
      stdin.setRawMode?.(true);
      stdin.on("data", onData);
      stdin.resume();
      return () => {
        stdin.off("data", onData);
        stdin.pause();
        stdin.setRawMode?.(false);
      };
    },
  };
}

function readOne(lines: Interface, signal: AbortSignal): Promise<Typed> {
  return new Promise<Typed>((resolve, reject) => {
    const typed: string[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    lines.on("line", (line) => {
      typed.push(line);
      clearTimeout(timer);
      timer = setTimeout(() => {
        // If a paste does not end with a line end, its last line stays in the prompt until the person presses Enter.
        if (lines.line === "") resolve({ kind: "line", text: typed.join("\n") });
      }, pasteGapMs);
    });
    lines.on("SIGINT", () => {
      process.stderr.write("^C\n");
      resolve({ kind: "interrupted", empty: lines.line === "" && typed.length === 0 });
    });
    lines.on("close", () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(typed.length > 0 ? { kind: "line", text: typed.join("\n") } : { kind: "end" });
    });
  });
}
