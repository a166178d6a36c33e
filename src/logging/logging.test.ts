// The log: one line for each entry whatever its fields hold, no terminal steered, nothing lost at the end.
import { describe, expect, test } from "bun:test";
import { generateApiKey } from "../domain/api-key.ts";
import { redactCredentials, redactSecrets } from "../domain/redaction.ts";
import { StreamLog } from "./logging.ts";

function record(format: "text" | "json", nowMs?: () => number) {
  const log = new StreamLog(
    format,
    (lines) => {
      written.push(Buffer.from(lines).toString());
    },
    nowMs,
  );
  const written: string[] = [];
  const all = () => {
    log.flush();
    return written.join("");
  };
  return { log, written, all };
}

/** Texts that somebody may put into a model id, a path or a header to write lines of their own. */
const forgeries: readonly [name: string, value: string][] = [
  ["a line feed", "a\nERROR forged"],
  ["a carriage return", "a\r\nforged"],
  ["a quote", 'a" status=200 id="x'],
  ["a field", "a b=c"],
  ["a line separator", "a\u2028forged"],
  ["a paragraph separator", "a\u2029forged"],
  ["a next-line character", "a\u0085forged"],
  ["an escape sequence", "\u001b[31mred"],
  ["a terminal title", "\u001b]0;title\u0007"],
  ["an 8-bit escape sequence", "\u009b31mred"],
  ["a delete character", "a\u007fb"],
  ["a NUL", "a\u0000b"],
  ["JSON", '{"time":"forged"}'],
  ["nothing", ""],
];

describe("log lines as text", () => {
  test("writes time, event and fields, names other levels than info, and omits undefined and null", () => {
    const { log, all } = record("text");
    log.info("request", { id: "req_1", status: 200, ms: 1.5, stream: true, none: undefined, nil: null });
    log.warn("odd");
    log.error("bad", { detail: "two words" });
    const lines = all().split("\n");
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} request id=req_1 status=200 ms=1\.5 stream=true$/);
    expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} warn odd$/);
    expect(lines[2]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} error bad detail="two words"$/);
    expect(lines[3]).toBe("");
  });

  test.each(forgeries)("forges no line or field and sends no terminal command for %s", (_name, value) => {
    const { log, all } = record("text");
    log.info("request", { model: value, last: 1 });
    const text = all();
    expect(text.endsWith(" last=1\n")).toBe(true);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
    expect(text.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    const shown = / model=(\S+|".*") last=1\n$/.exec(text)?.[1] ?? "";
    expect(shown.startsWith('"') ? JSON.parse(shown) : shown).toBe(value);
  });
});

describe("log lines as JSON", () => {
  test.each(forgeries)("keeps %s within one JSON object on one line", (_name, value) => {
    const { log, all } = record("json");
    log.warn("request", { model: value });
    const text = all();
    expect(text.split("\n")).toHaveLength(2);
    expect(JSON.parse(text)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as never,
      level: "warn",
      event: "request",
      model: value,
    });
  });

  test("writes the current time in milliseconds, also in the next second", () => {
    let nowMs = 0;
    const { log, all } = record("json", () => nowMs);
    for (const ms of [0, 7, 42, 999, 1_000, 1_001, 500, -86_400_000 + 3]) {
      nowMs = 1_800_000_000_000 + ms;
      log.info("e", { expected: new Date(nowMs).toISOString() });
    }
    for (const line of all().split("\n").filter(Boolean)) {
      const { time, expected } = JSON.parse(line);
      expect(time).toBe(expected);
    }
  });

  test("writes no text for people into a JSON log", () => {
    const { log, all } = record("json");
    log.plain("Welcome\n");
    log.info("listening");
    expect(all().split("\n").filter(Boolean)).toHaveLength(1);
    const people = record("text");
    people.log.plain("Welcome\n");
    expect(people.all()).toBe("Welcome\n");
  });
});

describe("writing of the log", () => {
  test("gathers lines and writes them together soon, in order", async () => {
    const { log, written } = record("json");
    for (let i = 0; i < 100; i++) log.info("e", { i });
    expect(written).toEqual([]);
    const endMs = performance.now() + 5_000;
    while (written.length === 0 && performance.now() < endMs) await Bun.sleep(5);
    expect(written).toHaveLength(1);
    expect(
      written[0]
        ?.split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line).i),
    ).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  test("writes an error at once with all earlier lines", () => {
    const { log, written } = record("json");
    log.info("before");
    log.error("bad");
    expect(
      written
        .join("")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line).event),
    ).toEqual(["before", "bad"]);
  });

  test("writes nothing when an empty log is flushed", () => {
    const { log, written } = record("text");
    log.flush();
    log.flush();
    expect(written).toEqual([]);
  });
});

const apiKey = generateApiKey("live");

describe("credentials in the log", () => {
  test.each(["text", "json"] as const)("writes no credentials in a line of %s, in any field of any event", (format) => {
    const { log, all } = record(format);
    log.configure({ redact: (text) => redactCredentials(redactSecrets(text, ["a known secret"])) });
    log.info("request", { detail: `bad key ${apiKey}`, status: 401 });
    log.info("request", { model: apiKey, method: `Bearer ${apiKey}` });
    log.info("other", { anything: apiKey, detail: "a known secret" });
    log.warn("odd", { reason: `postgres://a:p4ssw0rd@db/x`, url: "a known secret" });
    log.error("bad", { detail: new Error(`no ${apiKey}\nBearer a.b.c-d-e-f-g`).stack ?? "" });
    log.error("request", { detail: "a known secret" });
    const text = all();
    expect(text.split("\n")).toHaveLength(7);
    for (const secret of [apiKey.slice(11), "p4ssw0rd", "a.b.c", "a known secret"]) expect(text).not.toContain(secret);
    expect(text).toContain("sk_live_hr_…");
    expect(text).toContain("postgres://[redacted]@db/x");
  });

  test("writes no credentials in a request's line after any earlier lines", () => {
    const { log, all } = record("json");
    const clean = "llama-3.1-8b";
    const [begun, asLong] = [`${clean}${apiKey}`, "x".repeat(apiKey.length)];
    let lines = 0;
    for (const model of [clean, begun, clean, begun, begun, asLong, apiKey, undefined, clean]) {
      for (const method of ["POST", "POST", `POST${apiKey}`, "GET"]) {
        for (const detail of [undefined, "a word", undefined]) {
          log.info("request", { model, method, detail });
          lines++;
        }
      }
    }
    const text = all();
    expect(text).not.toContain(apiKey.slice(11));
    expect(text.split("\n")).toHaveLength(lines + 1);
    for (const name of [clean, `${clean}sk_live_hr_…`, asLong, "sk_live_hr_…"])
      expect(text).toContain(`"model":"${name}"`);
  });

  test("writes a request's line without credentials as it is, without a copy", () => {
    const { log, all } = record("json");
    const touched: string[] = [];
    log.configure({ redact: (text) => String(touched.push(text)) });
    log.info("request", { id: "req_1", model: "llama-3.1-8b", method: "POST", route: "/v1/chat/completions" });
    expect(touched).toEqual([]);
    expect(all()).toContain('"model":"llama-3.1-8b"');
  });
});

test("suppresses lines below the level, but no errors", () => {
  const { log, all } = record("json");
  const events = () =>
    all()
      .split("\n")
      .filter(Boolean)
      .map((line) => (JSON.parse(line) as { event: string }).event);
  log.configure({ level: "warn" });
  log.info("a");
  log.warn("b");
  log.error("c");
  log.configure({ level: "error" });
  log.info("d");
  log.warn("e");
  log.error("f");
  log.configure({});
  log.info("g");
  expect(events()).toEqual(["b", "c", "f", "g"]);
});

test("writes a repeated fault sixty times a minute, then its number", () => {
  const { log, all } = record("json");
  for (let i = 0; i < 10_000; i++) log.warn("upstream_gone", { i });
  for (let i = 0; i < 10_000; i++) log.error("write_failed", { i });
  log.warn("other");
  // Each of them is one request.
  for (let i = 0; i < 100; i++) log.error("request", { i });
  log.close();
  const lines = all()
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const count = (event: string) => lines.filter((line) => line["event"] === event).length;
  expect(["upstream_gone", "write_failed", "other", "request"].map(count)).toEqual([60, 60, 1, 100]);
  expect(lines.filter((line) => line["event"] === "repeated")).toMatchObject([
    { of: "upstream_gone", times: 9_940, seconds: 60 },
    { of: "write_failed", times: 9_940, seconds: 60 },
  ]);
});
