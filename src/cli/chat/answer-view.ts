// Shows an answer as it arrives, with its token count and speed.

import { formatCount } from "../terminal/figures.ts";
import { printableText, type Terminal } from "../terminal/terminal.ts";
import type { Answer, AnswerObserver } from "./chat-request.ts";

/**
 * Minimum milliseconds between the first text and the end. Below this time, for example if the answer came all at once,
 * no speed is shown.
 */
const minMeasuredMs = 10;

export class AnswerView implements AnswerObserver {
  readonly #terminal: Terminal;
  /** The text that has arrived so far, as the model wrote it. */
  received = "";
  #lastStream: "stdout" | "stderr" = "stdout";
  #lineOpen = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  text(piece: string): void {
    this.received += piece;
    // Control characters are removed, because the model's text must not control the terminal.
    this.#write("stdout", printableText(piece), (text) => text);
  }

  thought(piece: string): void {
    if (this.#terminal.interactive) this.#write("stderr", printableText(piece), this.#terminal.err.dim);
  }

  retrying(reason: string, waitMs: number): void {
    const waitSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    this.#terminal.note(this.#terminal.err.yellow(`${reason}; trying again in ${waitSeconds} s.`));
  }

  /** Ends the current line, if there is one. */
  end(): void {
    if (this.#lineOpen) this.#terminal[this.#lastStream].write("\n");
    this.#lineOpen = false;
  }

  /** Prints tokens and speed dimly on standard error, and the reason if the answer was cut off. */
  summary(answer: Answer): void {
    const { note, err } = this.#terminal;
    this.end();
    if (answer.finishReason === "length")
      note(err.yellow("Cut off: the limit of tokens is reached (see --max-tokens)."));
    if (answer.finishReason === "content_filter") note(err.yellow("Cut off by the server's content filter."));
    note(err.dim(figuresOf(answer)));
  }

  #write(stream: "stdout" | "stderr", text: string, style: (text: string) => string): void {
    if (text === "") return;
    if (stream !== this.#lastStream) this.end();
    this.#lastStream = stream;
    this.#terminal[stream].write(style(text));
    this.#lineOpen = !text.endsWith("\n");
  }
}

/** Returns text such as `12 tokens in, 48 out; first token after 0.21 s; 35.2 tokens/s`. */
function figuresOf({ usage, firstTokenMs, totalMs }: Answer): string {
  const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`;
  const about = usage?.estimated && usage.completion_tokens > 0 ? "about " : "";
  const tokens = usage
    ? [`${about}${formatCount(usage.prompt_tokens)} tokens in, ${formatCount(usage.completion_tokens)} out`]
    : [];
  if (firstTokenMs === undefined) return [...tokens, `${seconds(totalMs)}`].join("; ");
  const restMs = totalMs - firstTokenMs;
  const restTokens = (usage?.completion_tokens ?? 0) - 1;
  const speed =
    restTokens > 0 && restMs >= minMeasuredMs ? [`${((restTokens / restMs) * 1000).toFixed(1)} tokens/s`] : [];
  return [...tokens, `first token after ${seconds(firstTokenMs)}`, ...speed].join("; ");
}
