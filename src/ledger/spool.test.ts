// The spool: a frame counts only if it was written completely, and damage affects only the frame that it hits.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ManualClock, manualClock } from "../../tests/support/manual-clock.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import type { Trail } from "../domain/usage/trail.ts";
import type { UsageBegin, UsageRecord } from "../domain/usage/usage.ts";
import { prepareSpoolDirectory, Spool, type WriteToDisk } from "./spool.ts";
import { SpoolEncoder } from "./spool-encoder.ts";
import { cleanProgress, decodeLine, decodeOldLine, frameHeaderLength, type SpoolLine } from "./spool-format.ts";
import { listSegments, readSegment } from "./spool-reader.ts";
import { UsageColumns } from "./usage/usage-columns.ts";
import { requestKindOf } from "./usage/usage-kinds.ts";

let directory: string;
const spools: Spool[] = [];

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "headrace-spool-")), "spool");
  prepareSpoolDirectory(directory);
});

afterEach(async () => {
  for (const spool of spools.splice(0)) await spool.close();
  rmSync(join(directory, ".."), { recursive: true, force: true });
});

function newSpool(segmentBytes = 1 << 20, clock: Clock = systemClock, write: WriteToDisk = writeSync): Spool {
  const spool = new Spool({ directory, clock, segmentBytes, write });
  spools.push(spool);
  return spool;
}

function lineOf(i: number): SpoolLine {
  const begin: UsageBegin = {
    requestId: `req_${i}`,
    at: 1_800_000_000 + i,
    accountId: "acct_1",
    keyId: "key_1",
    appId: i % 2 === 0 ? null : "app_1",
    environment: "live",
    operation: "chat",
    model: `mödel €😀 "${i}"\n`,
    stream: true,
  };
  const tokens = { promptTokens: i, completionTokens: 2 * i, estimated: i % 2 === 0 };
  if (i % 3 === 0) return { begin };
  if (i % 3 === 1) return { progress: { requestId: begin.requestId, ...tokens, nanoUsd: i, elapsedMs: i } };
  return {
    settle: {
      ...begin,
      ...tokens,
      outcome: "failed",
      errorCode: "upstream_error",
      nanoUsd: null,
      capped: true,
      upstream: "u",
      durationMs: i,
      firstTokenMs: null,
      queueMs: 1,
    },
  };
}

const lines = Array.from({ length: 12 }, (_, i) => lineOf(i));

const encoder = new SpoolEncoder();

function frameOf(...said: readonly SpoolLine[]): Buffer {
  for (const line of said) {
    if ("begin" in line) encoder.begin(line.begin, requestKindOf(line.begin));
    else if ("progress" in line) encoder.progress(line.progress);
    else encoder.settle(UsageColumns.of([line.settle]), 0);
  }
  return Buffer.from(encoder.take());
}

/** Encodes a line as the first version did: without frames, each line with its own checksum. */
function oldLineOf(line: SpoolLine): Buffer {
  const json = JSON.stringify(line);
  return Buffer.from(`${Bun.hash.crc32(json).toString(16).padStart(8, "0")} ${json}\n`);
}

/** The parts of a spool with their lines, by format: three frames, or one line in each part for the first version. */
const formats = {
  frames: [lines.slice(0, 4), lines.slice(4, 5), lines.slice(5)].map((said) => ({ said, bytes: frameOf(...said) })),
  "lines of the first version": lines.map((line) => ({ said: [line], bytes: oldLineOf(line) })),
};

function read(path: string): { lines: SpoolLine[]; damaged: number } {
  const chunks = [...readSegment(path)];
  return {
    lines: chunks.flatMap((chunk) => chunk.lines),
    damaged: chunks.reduce((sum, chunk) => sum + chunk.damaged, 0),
  };
}

test("writes a frame to the file at once, and reads it as written", () => {
  const spool = newSpool();
  for (const { bytes } of formats.frames) spool.append(bytes);
  expect(read(spool.current.path)).toEqual({ lines, damaged: 0 });
  expect(spool.current.bytes).toBe(statSync(spool.current.path).size);
});

test("restricts directory and files to their owner, whatever the umask", () => {
  const before = process.umask(0);
  try {
    prepareSpoolDirectory(directory);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(newSpool().current.path).mode & 0o777).toBe(0o600);
  } finally {
    process.umask(before);
  }
});

describe("the trail of a request on the spool", () => {
  const settled = lineOf(2) as { settle: UsageRecord };
  const trail: Trail = [
    {
      ...{ upstream: "ü", upstreamModel: "m:7b", model: "m", result: "refused", status: 500, reason: 'said "no"\n€' },
      ...{ startedMs: 0, durationMs: 12 },
    },
    {
      ...{ upstream: null, upstreamModel: null, model: "m", result: "queue_full", status: null, reason: null },
      ...{ startedMs: 12, durationMs: 30 },
    },
  ];

  test("writes and reads a trail unchanged, and the lines around it", () => {
    const traced: SpoolLine = { settle: { ...settled.settle, trail } };
    const spool = newSpool();
    spool.append(frameOf(settled, traced, settled));
    expect(read(spool.current.path)).toEqual({ lines: [settled, traced, settled], damaged: 0 });
  });

  test("adds no byte to the line of a request without a trail, as earlier versions wrote it", () => {
    const line = frameOf(settled).subarray(frameHeaderLength).toString();
    expect(JSON.parse(line)).toEqual([
      ...["s", "req_2", 1_800_000_002, "acct_1", "key_1", null, "live", "chat", settled.settle.model, true],
      ...["failed", "upstream_error", true, true, "u", 2, 4, null, 2, null, 1],
    ]);
  });

  // hardening: O9
  test("keeps the usage of a record whose trail is unreadable, as of a later version", () => {
    const line = frameOf({ settle: { ...settled.settle, trail } })
      .subarray(frameHeaderLength)
      .toString();
    const later = line.replace('"queue_full"', '"beamed_up"');
    expect(later).not.toBe(line);
    expect(decodeLine(Buffer.from(later))).toEqual({ settle: { ...settled.settle, trail: undefined } });
    const longer = line.replace(/\]\]\]\n$/, ',"more"]],"more"]\n');
    expect(longer).not.toBe(line);
    expect(decodeLine(Buffer.from(longer))).toEqual({ settle: { ...settled.settle, trail } });
  });
});

describe.each(Object.entries(formats))("%s", (_name, parts) => {
  const whole = Buffer.concat(parts.map(({ bytes }) => bytes));
  const path = () => join(directory, "00000001.spool");

  test("reads the frames before a cut at any offset, and reports the torn one", () => {
    for (let length = 0; length <= whole.length; length++) {
      writeFileSync(path(), whole.subarray(0, length));
      const expected: SpoolLine[] = [];
      let end = 0;
      for (const part of parts) {
        if (end + part.bytes.length > length) break;
        end += part.bytes.length;
        expected.push(...part.said);
      }
      const found = read(path());
      expect([length, found.lines]).toEqual([length, expected]);
      expect([length, found.damaged > 0]).toEqual([length, length !== end]);
    }
  });

  test("loses only the frame with a changed byte, or the two around a changed end", () => {
    let start = 0;
    for (const [i, part] of parts.entries()) {
      const next = start + part.bytes.length;
      for (let offset = start; offset < next; offset += offset + 5 < next ? 5 : 1) {
        const changed = Buffer.from(whole);
        changed[offset] = (whole[offset] ?? 0) ^ 0x01;
        writeFileSync(path(), changed);
        const lost = new Set([i]);
        if (offset === next - 1) lost.add(i + 1);
        const found = read(path());
        expect([offset, found.damaged > 0]).toEqual([offset, true]);
        const expected = parts.flatMap(({ said }, at) => (lost.has(at) ? [] : said));
        expect([offset, found.lines]).toEqual([offset, expected]);
      }
      start = next;
    }
  });
});

test("reads frames after lines of the first version and after garbage", () => {
  const path = join(directory, "00000001.spool");
  const [first, second] = [lineOf(1), lineOf(2)];
  const garbage = Buffer.from("#0123abcd 00000900\n[1,2\n!\n");
  writeFileSync(path, Buffer.concat([oldLineOf(first), garbage, frameOf(second), garbage, oldLineOf(first)]));
  expect(read(path)).toEqual({ lines: [first, second, first], damaged: 6 });
});

test("reads a frame larger than the read buffer", () => {
  const path = join(directory, "00000001.spool");
  const many = Array.from({ length: 20_000 }, (_, i) => lineOf(i));
  const frame = frameOf(...many);
  expect(frame.length).toBeGreaterThan(1 << 20);
  writeFileSync(path, Buffer.concat([frameOf(lineOf(1)), frame, frameOf(lineOf(2))]));
  expect(read(path)).toEqual({ lines: [lineOf(1), ...many, lineOf(2)], damaged: 0 });
});

test("skips a file without line ends in bounded memory, and reads what follows", () => {
  const path = join(directory, "00000001.spool");
  const junk = Buffer.from("x".repeat(3 << 20));
  writeFileSync(path, Buffer.concat([junk, Buffer.from("\n"), frameOf(lineOf(1))]));
  expect(read(path).lines).toEqual([lineOf(1)]);
  writeFileSync(path, junk);
  expect(read(path)).toEqual({ lines: [], damaged: 1 });
});

describe("decoding of spool lines", () => {
  const old = (value: unknown) => oldLineOf(value as SpoolLine).subarray(0, -1);
  const line = (value: unknown) => Buffer.from(JSON.stringify(value));
  const begin = lineOf(0);
  const progress = { requestId: "a", promptTokens: 1, completionTokens: 1, estimated: true, nanoUsd: 1, elapsedMs: 1 };

  test("decodes every valid line", () => {
    for (const said of [begin, { progress }]) expect(decodeOldLine(old(said))).toEqual(said);
    expect(decodeLine(line(["p", "a", true, 1, 1, 1, 1]))).toEqual({ progress });
    const parts = { cachedTokens: 1, cacheWriteTokens: 0, reasoningTokens: 2, details: { served: ["flex"] } };
    const reported = line(["p", "a", true, 1, 1, 1, 1, 1, 0, 2, { served: ["flex"] }]);
    expect(decodeLine(reported)).toEqual({ progress: { ...progress, parts } });
    expect(again({ progress: { ...progress, parts } })).toEqual([{ progress: { ...progress, parts } }]);
  });

  test.each([
    ["an empty line", Buffer.from("")],
    ["no JSON", Buffer.from("[")],
    ["another kind", line(["e", "a"])],
    ["a missing field", line(["b", "a"])],
    ["a fraction", line(["p", "a", true, 1.5, 1, 1, 1])],
    ["a negative number", line(["p", "a", true, -1, 1, 1, 1])],
  ])("refuses to decode %s", (_name, bytes) => {
    expect(decodeLine(bytes)).toBeUndefined();
  });

  test.each([
    ["an empty line", Buffer.from("")],
    ["a missing checksum", line(begin)],
    ["no JSON", Buffer.from(`${Bun.hash.crc32("{").toString(16).padStart(8, "0")} {`)],
    ["another kind", old({ end: {} })],
    ["a missing field", old({ begin: { requestId: "a" } })],
    ["a fraction", old({ progress: { ...progress, promptTokens: 1.5 } })],
    ["a negative number", old({ progress: { ...progress, promptTokens: -1 } })],
  ])("refuses to decode %s of the first version", (_name, bytes) => {
    expect(decodeOldLine(bytes)).toBeUndefined();
  });
});

/** Writes lines as one frame, and returns the lines that are read back. */
function again(...said: readonly SpoolLine[]): SpoolLine[] {
  const path = join(directory, "00000001.spool");
  writeFileSync(path, frameOf(...said));
  return read(path).lines;
}

test("writes any numbers so that they can be read and stored", () => {
  const wild = [Number.NaN, Number.POSITIVE_INFINITY, -1, 1.6, 1e300, 2 ** 31, 2 ** 31 - 1, 9_999, 10_000];
  const sane = [0, Number.MAX_SAFE_INTEGER, 0, 2, Number.MAX_SAFE_INTEGER, 2 ** 31, 2 ** 31 - 1, 9_999, 10_000];
  const line = lineOf(0);
  if (!("begin" in line)) throw new Error("not a begin");
  for (const [i, value] of wild.entries()) {
    const begin = { ...line.begin, at: value };
    const progress = cleanProgress({
      requestId: "a",
      promptTokens: value,
      completionTokens: value,
      estimated: true,
      nanoUsd: value,
      elapsedMs: value,
    });
    const usage = UsageColumns.of([
      {
        ...begin,
        ...progress,
        outcome: "completed",
        errorCode: null,
        capped: false,
        upstream: null,
        durationMs: value,
        firstTokenMs: value,
        queueMs: value,
      },
    ]);
    const settle = usage.recordAt(0);
    expect(settle.promptTokens).toBe(sane[i] ?? -1);
    expect(again({ begin }, { progress }, { settle })).toEqual([
      { begin: { ...begin, at: sane[i] ?? -1 } },
      { progress },
      { settle },
    ]);
  }
});

test("reads any texts as written, however many differ", () => {
  const texts = ["", '"', "\\", "\n", "\u0000", "é", "😀", "\ud800", "x".repeat(100_000), "€".repeat(50_000)];
  const said: SpoolLine[] = [];
  for (let i = 0; i < 600; i++) {
    const text = (texts[i % texts.length] ?? "").slice(0, i < 100 ? undefined : 20);
    const line = lineOf(3 * i + 2);
    if (!("settle" in line)) throw new Error("not a settle");
    const { settle } = line;
    const begin = { ...settle, requestId: `r${text}`, model: `${text}${i % 50}`, keyId: `key_${i % 3}${text}` };
    said.push({ settle: { ...begin, upstream: `${text}${i % 40}`, errorCode: i % 2 === 0 ? null : text } });
  }
  // A lone surrogate is read back as its replacement character, which can be stored and read.
  const sound = JSON.parse(JSON.stringify(said)) as SpoolLine[];
  expect(again(...said)).toEqual(sound);
});

describe("segment files", () => {
  test("continues a full segment in the next number, and reads in the order of writing", () => {
    const spool = newSpool(1_000);
    for (let i = 0; i < 60; i++) {
      spool.ready(0);
      spool.append(frameOf(lineOf(i)));
    }
    const segments = listSegments(directory);
    expect(segments.length).toBeGreaterThan(5);
    expect(segments.flatMap(({ path }) => read(path).lines)).toEqual(Array.from({ length: 60 }, (_, i) => lineOf(i)));
  });

  test("never writes to an existing file, and leaves foreign files alone", () => {
    writeFileSync(join(directory, "00000009.spool"), "old");
    writeFileSync(join(directory, "notes.txt"), "mine");
    const spool = newSpool();
    expect(spool.current.number).toBe(10);
    expect(readFileSync(join(directory, "00000009.spool"), "utf8")).toBe("old");
    expect(listSegments(directory).map(({ number }) => number)).toEqual([9, 10]);
  });

  // hardening: F21
  test("ignores zeros from allocated room or from a power cut", () => {
    const spool = newSpool();
    const path = spool.current.path;
    spool.reserve(100_000);
    for (let i = 0; i < 100; i++) spool.append(frameOf(lineOf(i)));
    expect(statSync(path).size).toBeGreaterThan(100_000);
    expect(read(path)).toEqual({ lines: Array.from({ length: 100 }, (_, i) => lineOf(i)), damaged: 0 });
    const bytes = readFileSync(path);
    const frame = frameOf(lineOf(0)).length;
    writeFileSync(path, bytes.fill(0, frame, 4_096));
    const { lines } = read(path);
    expect(lines[0]).toEqual(lineOf(0));
    expect(lines.at(-1)).toEqual(lineOf(99));
  });

  // hardening: F21
  test("has allocated room on a full disk, and truncates it at the next segment", () => {
    const spool = newSpool(100);
    const { path } = spool.current;
    spool.reserve(1_000);
    expect(statSync(path).size).toBeGreaterThanOrEqual(1_000);
    spool.append(frameOf(lineOf(0)));
    spool.ready(2_000);
    expect(statSync(path).size).toBe(frameOf(lineOf(0)).length);
    expect(statSync(spool.current.path).size).toBeGreaterThanOrEqual(2_000);
  });

  test("gives up on a disk that writes nothing without an error", () => {
    const frame = frameOf(lineOf(0));
    let calls = 0;
    // The disk writes 5 bytes at the first call, and then nothing.
    const spool = newSpool(undefined, undefined, (fd, bytes, from, _length, at) => {
      if (calls > 100) throw new Error("It is asked again and again.");
      return calls++ === 0 ? writeSync(fd, bytes, from, 5, at) : 0;
    });
    expect(() => spool.append(frame)).toThrow("only a part");
    expect(() => spool.reserve(1_000_000)).toThrow("only a part");
    expect(calls).toBeLessThan(10);
  });

  test("takes back a partly written frame and writes the next one in its place", () => {
    let isFull = false;
    const spool = newSpool(undefined, undefined, (fd, bytes, from, length, at) => {
      const isFrame = bytes[from] !== 0;
      if (!isFull || !isFrame) return writeSync(fd, bytes, from, length, at);
      if (from > 0 || length < refused.length) throw new Error("ENOSPC");
      return writeSync(fd, bytes, from, length - 1, at);
    });
    const refused = frameOf(...lines);
    spool.append(frameOf(lineOf(0)));
    const { bytes } = spool.current;
    isFull = true;
    expect(() => spool.append(refused)).toThrow("ENOSPC");
    expect(spool.current.bytes).toBe(bytes);
    isFull = false;
    spool.append(frameOf(lineOf(1)));
    expect(read(spool.current.path)).toEqual({ lines: [lineOf(0), lineOf(1)], damaged: 0 });
  });

  test("writes nothing after a frame that could not be taken back, but to another segment", () => {
    let isBroken = false;
    let written = 0;
    const spool = newSpool(undefined, undefined, (fd, bytes, from, length, at) => {
      if (!isBroken) return writeSync(fd, bytes, from, length, at);
      if (written++ > 0) throw new Error("EIO");
      return writeSync(fd, bytes, from, 5, at);
    });
    spool.append(frameOf(lineOf(0)));
    isBroken = true;
    expect(() => spool.append(frameOf(lineOf(1)))).toThrow("EIO");
    isBroken = false;
    expect(() => spool.append(frameOf(lineOf(1)))).toThrow("damaged");
    expect(spool.ready(0).number).toBe(2);
    spool.append(frameOf(lineOf(1)));
    expect(read(spool.current.path)).toEqual({ lines: [lineOf(1)], damaged: 0 });
  });

  test("discards a new segment without room for what must not be lost", () => {
    let isFull = false;
    const spool = newSpool(100, manualClock(), (fd, bytes, from, length, at) => {
      if (isFull) throw new Error("ENOSPC");
      return writeSync(fd, bytes, from, length, at);
    });
    spool.append(frameOf(lineOf(0)));
    isFull = true;
    expect(spool.ready(1_000).number).toBe(1);
    expect(readdirSync(directory)).toEqual(["00000001.spool"]);
  });

  test("continues the old segment if no new one can be created", () => {
    const clock = manualClock();
    const spool = newSpool(100, clock);
    const { path } = spool.current;
    spool.append(frameOf(lineOf(0)));
    writeFileSync(join(directory, "00000002.spool"), "in the way");
    expect(spool.ready(0).path).toBe(path);
    spool.append(frameOf(lineOf(1)));
    expect(read(path).lines).toEqual([lineOf(0), lineOf(1)]);
    rmSync(join(directory, "00000002.spool"));
    clock.advance(1_000);
    expect(spool.ready(0).number).toBe(2);
  });

  test.each([
    ["a second later", (clock: ManualClock) => clock.advance(500)],
    ["once somebody has found room", (_: ManualClock, spool: Spool) => spool.roomFound()],
  ])("tries to create a segment again %s, not at each write", (_when, later) => {
    const clock = manualClock();
    const spool = newSpool(100, clock);
    spool.append(frameOf(lineOf(0)));
    const next = join(directory, "00000002.spool");
    writeFileSync(next, "in the way");
    expect(spool.ready(0).number).toBe(1);
    rmSync(next);
    clock.advance(500);
    expect([spool.ready(0).number, spool.rotate(0), existsSync(next)]).toEqual([1, false, false]);
    spool.append(frameOf(lineOf(1)));
    later(clock, spool);
    expect(spool.ready(0).number).toBe(2);
  });

  test("keeps what a failed sync missed for the next sync", async () => {
    let fails = true;
    const synced: number[] = [];
    const sync = async (fd: number) => {
      synced.push(fd);
      if (fails) throw new Error("EIO");
    };
    const spool = new Spool({ directory, clock: systemClock, segmentBytes: 1 << 20, sync });
    spools.push(spool);
    expect(spool.keeps).toBe(true);
    spool.append(new Uint8Array(8));
    await expect(spool.sync()).rejects.toThrow("EIO");
    expect([spool.unsynced, spool.keeps]).toEqual([true, false]);
    await expect(spool.sync()).rejects.toThrow("EIO");
    fails = false;
    await spool.sync();
    expect([spool.unsynced, spool.keeps]).toEqual([false, true]);
    expect(synced).toHaveLength(3);
  });

  test("syncs the directory again after a failed sync", async () => {
    const spool = newSpool();
    spool.append(new Uint8Array(8));
    renameSync(directory, `${directory}-away`);
    await expect(spool.sync()).rejects.toThrow("ENOENT");
    expect([spool.unsynced, spool.keeps]).toEqual([true, false]);
    await expect(spool.sync()).rejects.toThrow("ENOENT");
    renameSync(`${directory}-away`, directory);
    await spool.sync();
    expect([spool.unsynced, spool.keeps]).toEqual([false, true]);
  });

  test("deletes only unpinned segments on close, also during a sync", async () => {
    const spool = newSpool(100);
    for (let i = 0; i < 4; i++) {
      spool.ready(0);
      spool.append(frameOf(lineOf(i)));
    }
    const [first, second, third] = spool.segments;
    if (!first || !second || !third) throw new Error("no segments");
    second.pins = 1;
    expect(spool.unsynced).toBe(true);
    const synced = spool.sync();
    spool.remove(first);
    await synced;
    expect(spool.unsynced).toBe(false);
    expect(readdirSync(directory)).not.toContain("00000001.spool");
    await spool.close();
    expect(readdirSync(directory)).toEqual(["00000002.spool"]);
    expect(() => spool.append(frameOf(lineOf(0)))).toThrow(/closed/);
  });
});
