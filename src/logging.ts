// Writes the log to standard output: lines for people, or one JSON object a line for programs.
import type { Log, LogFields } from "./domain/log.ts";

type Level = "info" | "warn" | "error";

/** Lines gather this long before they are written, as a write for each request would cost as much as the request. */
const flushAfterMs = 20;

export class StreamLog implements Log {
  readonly #json: boolean;
  readonly #write: (text: string) => void;
  #buffer = "";
  /** The start of the second that the last line was of, and its time up to there. */
  #secondMs = Number.NaN;
  #second = "";
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
    const time = this.#time();
    if (this.#json) this.#append(`${jsonLine(time, level, event, fields)}\n`);
    else this.#append(`${time.slice(11, 23)} ${level === "info" ? "" : `${level} `}${event}${textFields(fields)}\n`);
    if (level === "error") this.flush();
  }

  /** As `Date.toISOString` writes it; all but the milliseconds is the same for a whole second of lines. */
  #time(): string {
    const nowMs = Date.now();
    const ms = nowMs % 1000;
    if (nowMs - ms !== this.#secondMs) {
      this.#secondMs = nowMs - ms;
      this.#second = new Date(nowMs).toISOString().slice(0, 20);
    }
    return `${this.#second}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
  }

  #append(text: string): void {
    this.#buffer += text;
    this.#timer ??= setTimeout(() => this.flush(), flushAfterMs);
  }
}

/** As JSON.stringify writes `{ time, level, event, ...fields }`, without making that object. */
export function jsonLine(time: string, level: Level, event: string, fields: LogFields): string {
  // Such a field would take the place of the line's own.
  if ("time" in fields || "level" in fields || "event" in fields) {
    return JSON.stringify({ time, level, event, ...fields });
  }
  const rest = JSON.stringify(fields);
  const name = plainInText.test(event) ? `"${event}"` : JSON.stringify(event);
  return `{"time":"${time}","level":"${level}","event":${name}${rest === "{}" ? "}" : `,${rest.slice(1)}`}`;
}

const plainInText = /^[\w./:@*-]+$/;

/** `name=value` pairs; a value with spaces or control characters is quoted, so that it cannot forge a line. */
function textFields(fields: LogFields): string {
  let text = "";
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined || value === null) continue;
    text += ` ${name}=${typeof value === "string" && !plainInText.test(value) ? quoted(value) : value}`;
  }
  return text;
}

/** JSON leaves some characters as they are that end a line, or command a terminal. */
function quoted(value: string): string {
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
