// The event parser: line ends, fields, limits. Recorded streams cut at every byte are in tests/contract.
import { memoryUsage } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { withinMs } from "../../../tests/support/long.ts";
import { SseError, SseParser, SseReader } from "./sse.ts";

const encoder = new TextEncoder();

function parse(...pieces: string[]): string[] {
  const parser = new SseParser();
  return [...pieces.flatMap((piece) => parser.push(encoder.encode(piece))), ...parser.end()];
}

test("is at rest after all input was given out, and keeps nothing of an event", () => {
  const reader = new SseReader();
  const atRest: boolean[] = [];
  const next = () => {
    const data = reader.next();
    atRest.push(reader.atRest);
    return data;
  };
  reader.feed("data: a\n\ndata: b\n\n");
  expect([next(), next(), next()]).toEqual(["a", "b", undefined]);
  reader.feed("data: c\n");
  next();
  reader.feed("\n: x");
  expect([next(), next()]).toEqual(["c", undefined]);
  reader.feed("\n");
  next();
  expect(atRest).toEqual([false, true, true, false, false, false, true]);
});

describe("lines and fields (WHATWG HTML, 9.2.6)", () => {
  test.each([
    ["LF", "data: a\n\ndata: b\n\n"],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n"],
    ["CR", "data: a\r\rdata: b\r\r"],
    ["a mixture", "data: a\r\n\ndata: b\n\r\n"],
    ["a byte-order mark", "\ufeffdata: a\n\ndata: b\n\n"],
    ["other fields and comments", ": c\nevent: x\nid: 1\nretry: 5\ndata: a\n\n:\n\nunknown\ndata: b\nfoo: bar\n\n"],
    ["no blank", "data:a\n\ndata:b\n\n"],
    ["blank lines before, between and behind", "\n\n\ndata: a\n\n\n\ndata: b\n\n\n"],
    ["no last blank line", "data: a\n\ndata: b\n"],
    ["no last line end", "data: a\n\ndata: b"],
  ])("%s", (_name, text) => {
    expect(parse(text)).toEqual(["a", "b"]);
    expect(parse(...text)).toEqual(["a", "b"]);
  });

  test("joins data lines of an event with LF, empty ones too", () => {
    expect(parse("data: a\ndata: b\n\n")).toEqual(["a\nb"]);
    expect(parse("data\ndata: b\ndata:\n\n")).toEqual(["\nb\n"]);
  });

  test("removes exactly one blank after the colon of a field", () => {
    expect(parse("data:  a \n\n")).toEqual([" a "]);
  });

  test("ignores a field whose name only begins with data", () => {
    expect(parse("data2: a\ndatax\nDATA: b\n data: c\n\n")).toEqual([]);
  });

  test("skips events without data, and those whose data is empty", () => {
    expect(parse("event: ping\n\nid: 7\n\n")).toEqual([]);
    const heartbeats = "data:\n\ndata\n\ndata: \n\nevent: ping\ndata:\n\ndata: a\n\ndata:\n\ndata:";
    expect(parse(heartbeats)).toEqual(["a"]);
    expect(parse(...heartbeats)).toEqual(["a"]);
  });

  test("names the event that was read last, if its name is short", () => {
    const stream =
      "event: error\ndata: a\n\ndata: b\n\nevent:ping\n\ndata: c\n\nevent: longer_than_that\ndata: d\n\nevent: x\ndata: e";
    for (const pieces of [[stream], [...stream]]) {
      const reader = new SseReader();
      const read: string[] = [];
      for (const piece of pieces) {
        reader.feed(piece);
        for (let data = reader.next(); data !== undefined; data = reader.next()) read.push(reader.name + data);
      }
      const last = reader.end();
      expect([...read, reader.name + last]).toEqual(["errora", "b", "c", "d", "xe"]);
    }
  });

  test("joins characters that are split between reads", () => {
    const bytes = encoder.encode("data: 日本🚀é\n\n");
    const parser = new SseParser();
    expect([...bytes].flatMap((byte) => parser.push(new Uint8Array([byte])))).toEqual(["日本🚀é"]);
  });

  test("replaces bytes that are not UTF-8 without breaking the stream", () => {
    const parser = new SseParser();
    const bytes = new Uint8Array([...encoder.encode("data: a"), 0xff, 0xfe, ...encoder.encode("b\n\n")]);
    expect(parser.push(bytes)).toEqual(["a\ufffd\ufffdb"]);
  });

  test("delivers an event as soon as its blank line arrives", () => {
    const parser = new SseParser();
    expect(parser.push(encoder.encode("data: a\n"))).toEqual([]);
    expect(parser.push(encoder.encode("\ndata: b"))).toEqual(["a"]);
    expect(parser.push(encoder.encode("\n\n"))).toEqual(["b"]);
    expect(parser.end()).toEqual([]);
  });
});

test("delivers an event that ends in CR with the next byte, once no LF can follow", () => {
  const parser = new SseParser();
  expect(parser.push(encoder.encode("data: a\r\r"))).toEqual([]);
  expect(parser.push(encoder.encode("d"))).toEqual(["a"]);
  expect(parser.push(encoder.encode("ata: b\r\r\n"))).toEqual(["b"]);
});

test("does not read skipped text again", () => {
  const reader = new SseReader();
  reader.feed("data: a\n\ndata: b\n\ndata: c\n");
  expect(reader.next()).toBe("a");
  expect(reader.text.startsWith("data: b", reader.position)).toBe(true);
  reader.position += "data: b\n\n".length;
  expect(reader.next()).toBeUndefined();
  expect(reader.betweenEvents).toBe(false);
  reader.feed("\n");
  expect(reader.next()).toBe("c");
  expect(reader.betweenEvents).toBe(true);
});

// hardening: F3
test("keeps only the data of an event among megabytes of comments", () => {
  const reader = new SseReader();
  const bytes = Buffer.from(`data: ${"x".repeat(40)}\n: ${"c".repeat(65_000)}\n`);
  Bun.gc(true);
  const before = memoryUsage().current;
  for (let count = 0; count < 1_000; count++) {
    reader.feed(bytes.toString("latin1"));
    expect(reader.next()).toBeUndefined();
  }
  Bun.gc(true);
  expect(memoryUsage().current - before).toBeLessThan(bytes.length * 200);
  reader.feed("\n");
  expect(reader.next()?.split("\n")).toHaveLength(1_000);
});

// hardening: F3
test("refuses an event of more than 65,536 data lines", () => {
  const reader = new SseReader();
  reader.feed("data\n".repeat(65_536));
  expect(reader.next()).toBeUndefined();
  reader.feed("\n");
  expect(reader.next()).toBe("\n".repeat(65_535));
  reader.feed("data\n".repeat(65_537));
  expect(() => reader.next()).toThrow(SseError);
});

test("ignores blank lines between events with any line ends and splits", () => {
  const text = "\r\r\n\n\ndata: a\r\n\r\n\r\r\n\ndata: b\n\r\n\r\rdata: c\r\r\n";
  expect(new SseParser().push(encoder.encode(text))).toEqual(["a", "b", "c"]);
  const byBytes = new SseParser();
  expect([...encoder.encode(text)].flatMap((byte) => byBytes.push(new Uint8Array([byte])))).toEqual(["a", "b", "c"]);
});

describe("an event above 8 MiB", () => {
  const mebibyte = "x".repeat(1024 * 1024);

  function pushMany(piece: string, count: number): unknown {
    const parser = new SseParser();
    const bytes = encoder.encode(piece);
    try {
      for (let i = 0; i < count; i++) parser.push(bytes);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  test("refuses one endless line above 8 MiB, with and without a field name", () => {
    expect(pushMany(mebibyte, 12)).toBeInstanceOf(SseError);
    const parser = new SseParser();
    parser.push(encoder.encode("data: "));
    expect(() => {
      for (let i = 0; i < 12; i++) parser.push(encoder.encode(mebibyte));
    }).toThrow(SseError);
  });

  test("refuses an event above 8 MiB in many data lines", () => {
    expect(pushMany(`data: ${mebibyte}\n`, 12)).toBeInstanceOf(SseError);
  });

  test("refuses an event above 8 MiB in many data lines without a colon", () => {
    expect(pushMany("data\n".repeat(200_000), 60)).toBeInstanceOf(SseError);
  });

  test("does not count complete events and comments toward the 8 MiB of an event", () => {
    expect(pushMany(`data: ${mebibyte}\n\n`, 20)).toBeUndefined();
    expect(pushMany(`: ${mebibyte}\n`, 20)).toBeUndefined();
  });

  test("refuses an event above 8 MiB in linear time", () => {
    const elapsedMs = (kibibytes: number) => {
      const parser = new SseParser();
      const piece = encoder.encode("x".repeat(1024));
      const startedMs = performance.now();
      for (let i = 0; i < kibibytes; i++) parser.push(piece);
      return performance.now() - startedMs;
    };
    elapsedMs(2_000);
    let short = Number.POSITIVE_INFINITY;
    let long = Number.POSITIVE_INFINITY;
    // Both are measured in turn, and the least of each counts: what else the machine does falls on both.
    for (let round = 0; round < 4; round++) {
      short = Math.min(short, elapsedMs(2_000));
      long = Math.min(long, elapsedMs(8_000));
    }
    // Four times the bytes: 4 where it is linear, 16 where every read looks at everything again: some six seconds of it,
    // where the linear one is a tenth of a second at most, the half of it the collector's.
    expect(long).toBeLessThan(Math.max(short * 9, withinMs(200)));
  });
});
