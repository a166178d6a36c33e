// The input of commands: standard input as text, and a person's answers at a terminal.
import { createInterface } from "node:readline";
import { createLineEditor, type LineEditor } from "./line-editor.ts";
import { CliError, exitCodes, Interrupted, printable } from "./terminal.ts";

export interface CliInput {
  /** True if a person can answer questions: standard input is a terminal. */
  isTerminal: boolean;
  /** Reads the first line of standard input without its line end; may be empty. */
  readLine(): Promise<string>;
  /** Reads all of standard input. */
  readAll(): Promise<string>;
  /** Returns the person's answer, or undefined if they end the input instead. Rejects with Interrupted on Ctrl-C. */
  ask(question: string): Promise<string | undefined>;
  openEditor(): LineEditor;
}

export function standardInput(): CliInput {
  return {
    isTerminal: process.stdin.isTTY === true,
    readLine,
    readAll: () => Bun.stdin.text(),
    ask,
    openEditor: createLineEditor,
  };
}

async function readLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin, terminal: false });
  for await (const line of lines) {
    lines.close();
    return line;
  }
  return "";
}

/** The question goes to standard error, since standard output is for results. */
function ask(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, historySize: 0 });
  return new Promise<string | undefined>((resolve, reject) => {
    lines.on("SIGINT", () => {
      process.stderr.write("\n");
      reject(new Interrupted("SIGINT", "Interrupted. Nothing was changed."));
    });
    lines.on("close", () => resolve(undefined));
    lines.question(question, resolve);
  }).finally(() => lines.close());
}

export interface Confirmation {
  /** The action as a question without its question mark, such as "Revoke the key". */
  question: string;
  /** The consequences, in full sentences. */
  consequence?: string;
  /** True if the action can be undone. Otherwise the question ends with "This cannot be undone." */
  canBeUndone?: boolean;
  /** True if `--yes` was given. */
  yes: boolean | undefined;
}

/** Resolves once the person agrees. Without a terminal nobody can answer, so the call needs `--yes`. */
export async function confirm(input: CliInput, confirmation: Confirmation): Promise<void> {
  const { question, consequence, canBeUndone, yes } = confirmation;
  if (yes) return;
  const whole = [`${question}?`, consequence ?? [], canBeUndone ? [] : "This cannot be undone."].flat().join(" ");
  if (!input.isTerminal) {
    throw new CliError(
      `${whole} There is no terminal to ask at: to do it without a question, add --yes.`,
      exitCodes.usage,
    );
  }
  const answer = await input.ask(printable(`${whole} [y/N] `));
  if (!/^\s*y(es)?\s*$/i.test(answer ?? "")) throw new CliError("Nothing was changed.");
}
