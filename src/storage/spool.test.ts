// The spool: a line counts when it was written whole, and damage costs only the lines that it hit.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../domain/clock.ts";
import type { UsageBegin } from "../domain/usage.ts";
import { prepareSpoolDirectory, Spool } from "./spool.ts";
import { cleanBegin, cleanProgress, decodeLine, encodeLine, recordOf, type SpoolLine } from "./spool-format.ts";
import { listSegments, readSegment } from "./spool-reader.ts";

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

function newSpool(segmentBytes = 1 << 20): Spool {
  const spool = new Spool({ directory, clock: systemClock, segmentBytes });
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

function read(path: string): { lines: SpoolLine[]; damaged: number } {
  const chunks = [...readSegment(path)];
  return {
    lines: chunks.flatMap((chunk) => chunk.lines),
    damaged: chunks.reduce((sum, chunk) => sum + chunk.damaged, 0),
  };
}

test("what is appended is in the file at once, and is read as it was written", () => {
  const spool = newSpool();
  for (const line of lines) spool.append(encodeLine(line));
  expect(read(spool.current.path)).toEqual({ lines, damaged: 0 });
  expect(spool.current.bytes).toBe(statSync(spool.current.path).size);
});

test("directory and files are for their owner only, whatever the umask", () => {
  const before = process.umask(0);
  try {
    prepareSpoolDirectory(directory);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(newSpool().current.path).mode & 0o777).toBe(0o600);
  } finally {
    process.umask(before);
  }
});

test("a file cut at any offset says exactly the lines that ended before, and tells of the torn one", () => {
  const whole = Buffer.from(lines.map(encodeLine).join(""));
  const ends = lines.map((_, i) =>
    Buffer.byteLength(
      lines
        .slice(0, i + 1)
        .map(encodeLine)
        .join(""),
    ),
  );
  const path = join(directory, "00000001.spool");
  for (let length = 0; length <= whole.length; length++) {
    writeFileSync(path, whole.subarray(0, length));
    const complete = ends.filter((end) => end <= length).length;
    const damaged = length === 0 || ends.includes(length) ? 0 : 1;
    expect(read(path)).toEqual({ lines: lines.slice(0, complete), damaged });
  }
});

test("a changed byte costs its line, and no other; a changed newline the two that it parted", () => {
  const whole = Buffer.from(lines.map(encodeLine).join(""));
  const path = join(directory, "00000001.spool");
  for (let offset = 0; offset < whole.length - 1; offset += 7) {
    const changed = Buffer.from(whole);
    changed[offset] = (whole[offset] ?? 0) ^ 0x01;
    writeFileSync(path, changed);
    const lost = whole[offset] === 0x0a ? 2 : 1;
    const found = read(path);
    expect(found.lines).toHaveLength(lines.length - lost);
    for (const line of found.lines) expect(lines).toContainEqual(line);
  }
});

test("a file without any newline is skipped in bounded memory, and what follows is read", () => {
  const path = join(directory, "00000001.spool");
  writeFileSync(path, `${"x".repeat(3 << 20)}\n${encodeLine(lineOf(1))}`);
  expect(read(path).lines).toEqual([lineOf(1)]);
  writeFileSync(path, "x".repeat(3 << 20));
  expect(read(path)).toEqual({ lines: [], damaged: 1 });
});

describe("decoding refuses", () => {
  const encoded = (value: unknown) => {
    const json = JSON.stringify(value);
    return Buffer.from(`${Bun.hash.crc32(json).toString(16).padStart(8, "0")} ${json}`);
  };
  const begin = lineOf(0);
  const progress = { requestId: "a", promptTokens: 1, completionTokens: 1, estimated: true, nanoUsd: 1, elapsedMs: 1 };

  test("nothing that is right", () => {
    for (const line of [begin, { progress }]) expect(decodeLine(encoded(line))).toEqual(line);
  });

  test.each([
    ["an empty line", Buffer.from("")],
    ["a missing checksum", Buffer.from(JSON.stringify(begin))],
    ["no JSON", Buffer.from(`${Bun.hash.crc32("{").toString(16).padStart(8, "0")} {`)],
    ["another kind", encoded({ end: {} })],
    ["a missing field", encoded({ begin: { requestId: "a" } })],
    ["a fraction", encoded({ progress: { ...progress, promptTokens: 1.5 } })],
    ["a negative number", encoded({ progress: { ...progress, promptTokens: -1 } })],
  ])("%s", (_name, bytes) => {
    expect(decodeLine(bytes)).toBeUndefined();
  });
});

test("whatever numbers come in, what is written can be read and stored", () => {
  const wild = [Number.NaN, Number.POSITIVE_INFINITY, -1, 1.6, 1e300];
  const sane = [0, Number.MAX_SAFE_INTEGER, 0, 2, Number.MAX_SAFE_INTEGER];
  const line = lineOf(0);
  if (!("begin" in line)) throw new Error("not a begin");
  for (const [i, value] of wild.entries()) {
    const begin = cleanBegin({ ...line.begin, at: value });
    const progress = cleanProgress({
      requestId: "a",
      promptTokens: value,
      completionTokens: value,
      estimated: true,
      nanoUsd: value,
      elapsedMs: value,
    });
    const settle = recordOf(begin, {
      ...progress,
      outcome: "completed",
      errorCode: null,
      capped: false,
      upstream: null,
      durationMs: value,
      firstTokenMs: value,
      queueMs: value,
    });
    for (const one of [{ begin }, { progress }, { settle }]) {
      expect(decodeLine(Buffer.from(encodeLine(one).trimEnd()))).toEqual(one);
    }
    expect(settle.promptTokens).toBe(sane[i] ?? -1);
  }
});

describe("segments", () => {
  test("a full one is followed by the next number, and the order of reading is that of writing", () => {
    const spool = newSpool(2_000);
    for (let i = 0; i < 60; i++) {
      spool.ready();
      spool.append(encodeLine(lineOf(i)));
    }
    const segments = listSegments(directory);
    expect(segments.length).toBeGreaterThan(5);
    expect(segments.flatMap(({ path }) => read(path).lines)).toEqual(Array.from({ length: 60 }, (_, i) => lineOf(i)));
  });

  test("a new spool never writes to a file that is there, and strangers' files are left alone", () => {
    writeFileSync(join(directory, "00000009.spool"), "old");
    writeFileSync(join(directory, "notes.txt"), "mine");
    const spool = newSpool();
    expect(spool.current.number).toBe(10);
    expect(readFileSync(join(directory, "00000009.spool"), "utf8")).toBe("old");
    expect(listSegments(directory).map(({ number }) => number)).toEqual([9, 10]);
  });

  test("where no new one can be made, the old one grows on", () => {
    const spool = newSpool(100);
    const { path } = spool.current;
    spool.append(encodeLine(lineOf(0)));
    writeFileSync(join(directory, "00000002.spool"), "in the way");
    expect(spool.ready().path).toBe(path);
    spool.append(encodeLine(lineOf(1)));
    expect(read(path).lines).toEqual([lineOf(0), lineOf(1)]);
    rmSync(join(directory, "00000002.spool"));
    expect(spool.ready().number).toBe(2);
  });

  test("closing deletes those that nothing pins, and only them; syncing and removing get along", async () => {
    const spool = newSpool(100);
    for (let i = 0; i < 4; i++) {
      spool.ready();
      spool.append(encodeLine(lineOf(i)));
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
    expect(() => spool.append("x")).toThrow(/closed/);
  });
});
