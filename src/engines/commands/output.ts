// The last lines that a command wrote, for the operator: bounded, and without secrets.
import type { OutputLine } from "../../domain/models/model-process.ts";
import { redactCredentials, redactSecrets } from "../../domain/redaction.ts";

const mostLines = 1_000;
/** Longer ones are cut: a progress bar is one line for minutes. */
const mostCharacters = 2_000;

export class Output {
  readonly #secrets: readonly string[];
  readonly #nowSeconds: () => number;
  #lines: OutputLine[] = [];
  #number = 0;

  constructor(secrets: readonly string[], nowSeconds: () => number) {
    this.#secrets = secrets;
    this.#nowSeconds = nowSeconds;
  }

  add(line: string): void {
    // Progress bars go back to the beginning of their line: its last state counts.
    const text = line.trimEnd().split("\r").at(-1) ?? "";
    if (text.trim() === "") return;
    const safe = redactSecrets(redactCredentials(text.slice(0, mostCharacters)), this.#secrets);
    this.#lines.push({ number: ++this.#number, at: this.#nowSeconds(), text: safe });
    if (this.#lines.length >= 2 * mostLines) this.#lines = this.#lines.slice(-mostLines);
  }

  /** Those behind the one of this number, the oldest first. */
  after(number: number): readonly OutputLine[] {
    return this.#lines.slice(-mostLines).filter((line) => line.number > number);
  }

  /** The last one; undefined where there is none. */
  get last(): string | undefined {
    return this.#lines.at(-1)?.text;
  }

  /** Adds the lines of a stream until it ends. */
  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of stream) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      // A line without an end must not grow for ever.
      rest = (lines.pop() ?? "").slice(-2 * mostCharacters);
      for (const line of lines) this.add(line);
    }
    this.add(rest);
  }
}
