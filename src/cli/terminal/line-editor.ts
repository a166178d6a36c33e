// Lines that a person types at a terminal, with history and Ctrl-C; nothing of it is kept on disk.
import { createInterface, type Interface } from "node:readline";

export type Typed =
  | { kind: "line"; text: string }
  /** Ctrl-C; `empty`: nothing was typed yet. */
  | { kind: "interrupted"; empty: boolean }
  /** Ctrl-D at an empty line, or the terminal is gone. */
  | { kind: "end" };

export interface LineEditor {
  /** Several lines that are pasted at once are one text. Rejects with the reason of `signal`. */
  read(prompt: string, signal: AbortSignal): Promise<Typed>;
  /** Until the function that it gives is called: Ctrl-C calls `onInterrupt`, and what else is typed is dropped. */
  watch(onInterrupt: () => void): () => void;
}

/** Faster than anybody types, slower than a terminal delivers what is pasted. */
const pasteGapMs = 30;
const historySize = 1000;
const controlC = 0x03;

/** At the process's own terminal; the prompt goes to standard error, which standard output's reader does not see. */
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
      // Raw: Ctrl-C comes as a byte and ends the answer only, and keys do not appear in the middle of it.
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
        // The rest of a paste without an end of line stands at the prompt: its Enter is still to come.
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
