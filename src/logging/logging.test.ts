// The log: one line for each entry whatever its fields hold, no terminal steered, nothing lost at the end.
import { describe, expect, setSystemTime, test } from "bun:test";
import { generateApiKey } from "../domain/api-key.ts";
import { redactCredentials, redactSecrets } from "../domain/redaction.ts";
import { StreamLog } from "./logging.ts";

function record(format: "text" | "json") {
  const log = new StreamLog(format, (lines) => {
    written.push(Buffer.from(lines).toString());
  });
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

describe("text", () => {
  test("a line has time, event and fields; other levels than info are named; what is undefined or null is left out", () => {
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

  test.each(forgeries)("%s forges neither a line nor a field, and steers no terminal", (_name, value) => {
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

describe("json", () => {
  test.each(forgeries)("%s stays within one JSON object on one line", (_name, value) => {
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

  test("the time is that of the moment, in milliseconds, also in the next second", async () => {
    const { log, all } = record("json");
    try {
      for (const ms of [0, 7, 42, 999, 1_000, 1_001, 500, -86_400_000 + 3]) {
        setSystemTime(new Date(1_800_000_000_000 + ms));
        log.info("e", { expected: new Date().toISOString() });
        await Promise.resolve();
      }
    } finally {
      setSystemTime();
    }
    for (const line of all().split("\n").filter(Boolean)) {
      const { time, expected } = JSON.parse(line);
      expect(time).toBe(expected);
    }
  });

  test("text for people is left out, so that every line is a log line", () => {
    const { log, all } = record("json");
    log.plain("Welcome\n");
    log.info("listening");
    expect(all().split("\n").filter(Boolean)).toHaveLength(1);
    const people = record("text");
    people.log.plain("Welcome\n");
    expect(people.all()).toBe("Welcome\n");
  });
});

describe("writing", () => {
  test("lines gather and are written together soon after, in order", async () => {
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

  test("an error is written at once, with what was logged before it: the process may be about to end", () => {
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

  test("flushing an empty log writes nothing", () => {
    const { log, written } = record("text");
    log.flush();
    log.flush();
    expect(written).toEqual([]);
  });
});

const apiKey = generateApiKey("live");

describe("credentials", () => {
  test.each(["text", "json"] as const)(
    "credentials are in no line of %s, in whatever field of whatever event they are",
    (format) => {
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
      for (const secret of [apiKey.slice(11), "p4ssw0rd", "a.b.c", "a known secret"])
        expect(text).not.toContain(secret);
      expect(text).toContain("sk_live_hr_…");
      expect(text).toContain("postgres://[redacted]@db/x");
    },
  );

  test("credentials are in no request's line whatever lines came before it", () => {
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

  test("a request's line without any is written as it is, not copied", () => {
    const { log, all } = record("json");
    const touched: string[] = [];
    log.configure({ redact: (text) => String(touched.push(text)) });
    log.info("request", { id: "req_1", model: "llama-3.1-8b", method: "POST", route: "/v1/chat/completions" });
    expect(touched).toEqual([]);
    expect(all()).toContain('"model":"llama-3.1-8b"');
  });
});

test("what is below the level is not written; errors always are", () => {
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

test("a fault that repeats itself without end is written sixty times a minute, and then told of as a number", () => {
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
