// Writes the log to standard output: lines for people, or one JSON object a line for programs.
import type { Log, LogFields } from "./domain/log.ts";

type Level = "info" | "warn" | "error";

/** Lines gather this long before they are written, as a write for each request would cost as much as the request. */
const flushAfterMs = 20;

export class StreamLog implements Log {
  readonly #json: boolean;
  readonly #write: (text: string) => void;
  #buffer = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(format: "text" | "json", write: (text: string) => void = (text) => void process.stdout.write(text)) {
    this.#json = format === "json";
    this.#write = write;
  }

  info(event: string, fields: LogFields = {}): void {
    this.#line("info", event, fields);
  }

  warn(event: string, fields: LogFields = {}): void {
    this.#line("warn", event, fields);
  }

  error(event: string, fields: LogFields = {}): void {
    this.#line("error", event, fields);
  }

  /** Text for people as it is; nothing in JSON format, where every line is a log line. */
  plain(text: string): void {
    if (!this.#json) this.#append(text);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#buffer;
    this.#buffer = "";
    if (text !== "") this.#write(text);
  }

  #line(level: Level, event: string, fields: LogFields): void {
    const time = new Date().toISOString();
    if (this.#json) this.#append(`${JSON.stringify({ time, level, event, ...fields })}\n`);
    else this.#append(`${time.slice(11, 23)} ${level === "info" ? "" : `${level} `}${event}${textFields(fields)}\n`);
    if (level === "error") this.flush();
  }

  #append(text: string): void {
    this.#buffer += text;
    this.#timer ??= setTimeout(() => this.flush(), flushAfterMs);
  }
}

/** `name=value` pairs; a value with spaces or control characters is quoted, so that it cannot forge a line. */
function textFields(fields: LogFields): string {
  let text = "";
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue;
    const shown = typeof value === "string" && !/^[\w./:@*-]+$/.test(value) ? quoted(value) : String(value);
    text += ` ${name}=${shown}`;
  }
  return text;
}

/** JSON leaves some characters as they are that end a line, or command a terminal. */
function quoted(value: string): string {
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
