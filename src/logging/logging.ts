// Writes the log to standard output, as readable text or as one JSON object per line. Secrets are removed.
import { exactMs, wallMs } from "../base/clock.ts";
import type { Log, LogFields, LogLevel } from "../base/log.ts";
import { mayHoldCredentials, redactCredentials } from "../domain/redaction.ts";
import { FloodControl } from "./flood.ts";
import { LineBuffer } from "./line-buffer.ts";

/** Milliseconds for which lines are buffered. A separate write for each request would cost as much as the request. */
const flushAfterMs = 20;
/** Maximum lines per minute of the same warning or error. Request lines are not limited. */
const maxRepetitions = 60;
const floodWindowMs = 60_000;
const requestEvent = "request";
const ranks: Readonly<Record<LogLevel, number>> = { info: 0, warn: 1, error: 2 };

export interface LogSettings {
  /** Minimum level of written lines. Default `info`. */
  level?: LogLevel;
  /** Removes secrets from a text. Default: everything that looks like a credential. */
  redact?: (text: string) => string;
}

export class StreamLog implements Log {
  readonly #json: boolean;
  /** Unix milliseconds. */
  readonly #nowMs: () => number;
  readonly #lines: LineBuffer;
  readonly #flood: FloodControl;
  #rank = ranks.info;
  #redact: (text: string) => string = redactCredentials;
  /** Cache of the time as text: `#last` for the last millisecond, and `#second` for its whole second. */
  #lastMs = Number.NaN;
  #last = "";
  #secondMs = Number.NaN;
  #second = "";
  /** Method and models of the last request line without secrets. Most lines repeat them and need no new check. */
  #cleanMethod: LogFields[string];
  #cleanModel: LogFields[string];
  #cleanServed: LogFields[string];
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `write` must not keep the bytes after it returns. */
  constructor(format: "text" | "json", write: (lines: Uint8Array) => void = writeOut, nowMs: () => number = wallMs) {
    this.#json = format === "json";
    this.#nowMs = nowMs;
    this.#lines = new LineBuffer(write);
    this.#flood = new FloodControl({
      most: maxRepetitions,
      windowMs: floodWindowMs,
      nowMs: () => exactMs(),
      suppressed: (of, times, seconds) => this.#line("warn", "repeated", { of, times, seconds }),
    });
  }

  /** May be called again, for example after a reload. */
  configure({ level = "info", redact = redactCredentials }: LogSettings): void {
    this.#rank = ranks[level];
    this.#redact = redact;
  }

  info(event: string, fields: LogFields = {}): void {
    if (this.#rank > ranks.info) return;
    // Request lines are the most frequent ones. Only their known free-text fields are checked for secrets.
    const isSafe = event === requestEvent && !this.#hasFreeText(fields);
    this.#line("info", event, isSafe ? fields : this.#safe(fields));
  }

  warn(event: string, fields: LogFields = {}): void {
    if (this.#rank > ranks.warn || !this.#admits(event)) return;
    this.#line("warn", event, this.#safe(fields));
  }

  error(event: string, fields: LogFields = {}): void {
    if (this.#admits(event)) this.#line("error", event, this.#safe(fields));
  }

  /** Writes readable text unchanged; nothing in JSON format, where every line is a log line. */
  plain(text: string): void {
    if (this.#json) return;
    this.#lines.put(text);
    this.#flushSoon();
  }

  /** Writes complete log lines of another process of this server. */
  pass(lines: Uint8Array): void {
    this.#lines.pass(lines);
    this.#flushSoon();
  }

  /** Writes buffered lines, and reports lines that were not written. */
  close(): void {
    this.#flood.flush();
    this.flush();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lines.flush();
  }

  #admits(event: string): boolean {
    return event === requestEvent || this.#flood.admits(event);
  }

  /** Reports whether a request line contains text of a client or server that may hold a secret. */
  #hasFreeText({ detail, attempts, model, upstream_model: served, method }: LogFields): boolean {
    if (detail !== undefined || attempts !== undefined || looksSecret(served, this.#cleanServed)) return true;
    if (looksSecret(method, this.#cleanMethod) || looksSecret(model, this.#cleanModel)) return true;
    this.#cleanMethod = method;
    this.#cleanModel = model;
    this.#cleanServed = served;
    return false;
  }

  #safe(fields: LogFields): LogFields {
    const safe: Record<string, LogFields[string]> = {};
    for (const name in fields) {
      const value = fields[name];
      safe[name] = typeof value === "string" ? this.#redact(value) : value;
    }
    return safe;
  }

  #line(level: LogLevel, event: string, fields: LogFields): void {
    const time = this.#time();
    if (this.#json) this.#lines.putJson(time, level, event, fields);
    else this.#lines.put(`${time.slice(11, 23)} ${level === "info" ? "" : `${level} `}${event}${textFields(fields)}\n`);
    if (level === "error") this.flush();
    else this.#flushSoon();
  }

  /** Returns the current time as `Date.toISOString` does. The text up to the second is cached. */
  #time(): string {
    const nowMs = this.#nowMs();
    if (nowMs === this.#lastMs) return this.#last;
    const ms = nowMs % 1000;
    if (nowMs - ms !== this.#secondMs) {
      this.#secondMs = nowMs - ms;
      this.#second = new Date(nowMs).toISOString().slice(0, 20);
    }
    this.#lastMs = nowMs;
    this.#last = `${this.#second}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
    return this.#last;
  }

  #flushSoon(): void {
    this.#timer ??= setTimeout(() => this.flush(), flushAfterMs);
  }
}

function writeOut(lines: Uint8Array): void {
  process.stdout.write(lines);
}

function looksSecret(value: LogFields[string], clean: LogFields[string]): boolean {
  return typeof value === "string" && value !== clean && mayHoldCredentials(value);
}

const plainInText = /^[\w./:@*-]+$/;

/** Writes `name=value` pairs. A value with spaces or control characters is quoted, so that it cannot forge a line. */
function textFields(fields: LogFields): string {
  let text = "";
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined || value === null) continue;
    text += ` ${name}=${typeof value === "string" && !plainInText.test(value) ? quoted(value) : value}`;
  }
  return text;
}

/** Quotes as JSON, and also escapes other characters that end a line or control a terminal. */
function quoted(value: string): string {
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
