// A command's last lines for the operator: limited, and without secrets.
import type { OutputLine } from "../domain/models/model-process.ts";
import { redactCredentials, redactSecrets } from "../domain/redaction.ts";

const maxLines = 1_000;
/** Longer lines are cut: a progress bar writes one endless line. */
const maxCharacters = 2_000;
/**
 * Characters that are kept beyond the cut, so that a secret that the cut would split is still recognized and removed.
 */
const maxSecretLength = 500;

export class Output {
  readonly #secrets: readonly string[];
  readonly #nowSeconds: () => number;
  /** The last lines, from which secrets are not removed yet. */
  #lines: OutputLine[] = [];
  #number = 0;

  constructor(secrets: readonly string[], nowSeconds: () => number) {
    this.#secrets = secrets;
    this.#nowSeconds = nowSeconds;
  }

  add(line: string): void {
    // A progress bar overwrites its line after each carriage return, so only its last state is kept.
    const text = line.trimEnd().split("\r").at(-1) ?? "";
    if (text.trim() === "") return;
    this.#lines.push({
      number: ++this.#number,
      at: this.#nowSeconds(),
      // The text is copied, because a part of a string keeps the whole string in memory, here everything that arrived
      // with the line.
      text: Buffer.from(text.slice(0, maxCharacters + maxSecretLength)).toString(),
    });
    if (this.#lines.length >= 2 * maxLines) this.#lines = this.#lines.slice(-maxLines);
  }

  /** Returns the lines after the one with this number, oldest first. */
  after(number: number): readonly OutputLine[] {
    const lines = this.#lines.slice(-maxLines).filter((line) => line.number > number);
    return lines.map((line) => ({ ...line, text: this.#safe(line.text) }));
  }

  /** The last line, or undefined. */
  get last(): string | undefined {
    const line = this.#lines.at(-1);
    return line && this.#safe(line.text);
  }

  /**
   * Removes secrets from a line. Called only when lines are read, because a command with endless output must not take
   * time from requests.
   */
  #safe(text: string): string {
    return redactSecrets(redactCredentials(text), this.#secrets).slice(0, maxCharacters);
  }

  /** Adds the lines of a stream until it ends. */
  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of stream) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      // A line without an end must not grow without limit.
      rest = (lines.pop() ?? "").slice(-2 * maxCharacters);
      for (const line of lines) this.add(line);
    }
    this.add(rest);
  }
}
