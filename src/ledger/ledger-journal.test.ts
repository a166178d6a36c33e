// Lines that callers add while the journal resolves their promises: they are in the same write, or in one of their own.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { systemClock } from "../base/clock.ts";
import { whenSettled } from "../base/deferred.ts";
import { errorCodes } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { maxReasonLength, maxSteps, stepResults } from "../domain/usage/trail.ts";
import {
  type LedgerEntry,
  type UsageBegin,
  type UsageEnd,
  type UsageRecord,
  usageOutcomes,
} from "../domain/usage/usage.ts";
import { LedgerJournal } from "./ledger-journal.ts";
import { prepareSpoolDirectory, type Segment, Spool } from "./spool.ts";
import { readSegment } from "./spool-reader.ts";
import { UsageColumns } from "./usage/usage-columns.ts";

let directory: string;
let spool: Spool;
let journal: LedgerJournal;
/** The segment of each settled record, as the journal reports it. */
let settled: Map<string, Segment>;

const nobody = () => {};
const log: Log = { info: nobody, warn: nobody, error: nobody };

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-journal-"));
  prepareSpoolDirectory(directory);
  spool = new Spool({ directory, clock: systemClock, segmentBytes: 1_000_000 });
  settled = new Map();
  journal = journalOn(spool);
});

function journalOn(spool: Spool): LedgerJournal {
  return new LedgerJournal({
    spool,
    log,
    clock: systemClock,
    onSettled: (usage, row, segment) => void settled.set(usage.requestIds[row] ?? "", segment),
    onTurn: nobody,
  });
}

afterEach(async () => {
  await spool.close();
  rmSync(directory, { recursive: true });
});

function beginOf(requestId: string): UsageBegin {
  return {
    requestId,
    at: 1_800_000_000,
    accountId: "acct_1",
    keyId: "key_1",
    appId: null,
    environment: "live",
    operation: "chat",
    model: "m",
    stream: false,
  };
}

const begin = (requestId: string): LedgerEntry => journal.begin(beginOf(requestId), 0);

const end: UsageEnd = {
  promptTokens: 7,
  completionTokens: 2,
  estimated: false,
  outcome: "cancelled",
  errorCode: null,
  nanoUsd: null,
  capped: false,
  upstream: null,
  durationMs: 1,
  firstTokenMs: null,
  queueMs: 0,
};

/**
 * Begins a request that settles as soon as its begin is written, such as that of a client that has disconnected
 * meanwhile.
 */
function beginAndEnd(requestId: string): LedgerEntry {
  const entry = begin(requestId);
  whenSettled(entry.begun, () => void entry.settle(end), nobody);
  return entry;
}

/** Returns the ids of the requests whose last line is in the segment. */
const endedIn = (segment: Segment) => settledIn(segment).map(({ requestId }) => requestId);

function settledIn({ path }: Segment): UsageRecord[] {
  return [...readSegment(path)].flatMap(({ lines }) =>
    lines.flatMap((line) => ("settle" in line ? [line.settle] : [])),
  );
}

test("writes what a request reports when it begins before a new segment starts", () => {
  begin("open");
  beginAndEnd("brief");
  const first = spool.current;
  journal.rotate();
  journal.commit();
  expect(settled.get("brief")).toBe(first);
  expect(endedIn(first)).toEqual(["brief"]);
});

test("leaves nothing unwritten of what listeners reported during a commit", () => {
  begin("open");
  beginAndEnd("brief");
  journal.commit();
  // The drain relies on this: after a commit, it has all records that are settled so far.
  expect([...settled.keys()]).toEqual(["brief"]);
});

test("fails only the repeated record if the disk is full for it", () => {
  begin("open");
  beginAndEnd("brief");
  const again = UsageColumns.of([{ ...beginOf("again"), ...end }]);
  const append = spool.append.bind(spool);
  spool.append = (frame) => {
    if (Buffer.from(frame).includes("again")) throw new Error("ENOSPC");
    append(frame);
  };
  expect(() => journal.repeat(again, [0])).toThrow("ENOSPC");
  journal.commit();
  expect(endedIn(spool.current)).toEqual(["brief"]);
});

test("does not use reserved room of an open request for a repeated record", () => {
  const open = begin("open");
  const again = UsageColumns.of([{ ...beginOf("again"), ...end }]);
  const reserve = spool.reserve.bind(spool);
  // The disk has space for the last line of one request only.
  spool.reserve = (bytes) => {
    if (bytes > 500) throw new Error("ENOSPC");
    reserve(bytes);
  };
  expect(() => journal.repeat(again, [0])).toThrow("ENOSPC");
  expect(endedIn(spool.current)).toEqual([]);
  open.settle(end);
  journal.commit();
  expect(endedIn(spool.current)).toEqual(["open"]);
  spool.reserve = reserve;
  expect(journal.repeat(again, [0])).toBe(spool.current);
  expect(endedIn(spool.current)).toEqual(["open", "again"]);
});

const text = (maxLength: number) =>
  fc.oneof(fc.string({ maxLength }), fc.string({ unit: "grapheme", maxLength: Math.floor(maxLength / 8) }));
const count = fc.oneof(fc.nat(), fc.constant(Number.MAX_SAFE_INTEGER));
const id = fc.string({ unit: fc.constantFrom(..."abc-_01"), minLength: 1, maxLength: 60 });
const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const begins = fc.record({
  ...{ at: count, accountId: id, keyId: id, appId: orNull(id), model: text(256), stream: fc.boolean() },
  ...{ environment: fc.constant("live" as const), operation: fc.constant("completion" as const) },
});
const step = fc.record({
  ...{
    upstream: orNull(id),
    upstreamModel: orNull(text(256)),
    model: text(256),
    reason: orNull(text(maxReasonLength)),
  },
  ...{
    result: fc.constantFrom(...stepResults),
    status: orNull(fc.nat(599)),
    startedMs: fc.nat(),
    durationMs: fc.nat(),
  },
});
const ends = fc.record({
  ...{ promptTokens: count, completionTokens: count, estimated: fc.boolean(), capped: fc.boolean() },
  ...{ outcome: fc.constantFrom(...usageOutcomes), errorCode: orNull(fc.constantFrom(...errorCodes)) },
  ...{ nanoUsd: orNull(count), durationMs: count, firstTokenMs: orNull(count), queueMs: count },
  upstream: orNull(fc.string({ unit: fc.constantFrom(..."ab.-"), maxLength: 63 })),
  trail: fc.option(fc.array(step, { minLength: 1, maxLength: maxSteps }), { nil: undefined }),
});

/** A spool whose disk, once it is full, provides the bytes that were reserved and not one more. */
class NarrowSpool extends Spool {
  isFull = false;
  #until = 0;

  override reserve(bytes: number): void {
    const needed = this.current.bytes + bytes;
    if (this.isFull && needed > this.#until) throw new Error("ENOSPC");
    super.reserve(bytes);
    this.#until = Math.max(this.#until, needed);
  }

  override append(frame: Uint8Array): void {
    if (this.isFull && this.current.bytes + frame.length > this.#until) throw new Error("ENOSPC: not promised");
    super.append(frame);
  }
}

test("reserves room on a full disk for the ends of all begun requests, with any trails", async () => {
  const requests = fc.array(fc.tuple(begins, ends, fc.nat(2)), { minLength: 1, maxLength: 12 });
  const narrowSpool = () => new NarrowSpool({ directory, clock: systemClock, segmentBytes: 1e9 });
  await fc.assert(
    fc.asyncProperty(requests, fc.boolean(), async (all, isOneTurn) => {
      const narrow = narrowSpool();
      const own = journalOn(narrow);
      const entries = all.map(([begin], i) => own.begin({ ...begin, requestId: `req_${i}` }, 0));
      if (!isOneTurn) own.commit();
      narrow.isFull = true;
      for (const [i, [, end, checkpoints]] of all.entries()) {
        for (let n = 0; n < checkpoints; n++) entries[i]?.progress(end, end.nanoUsd);
        entries[i]?.settle(end);
        if (!isOneTurn) own.commit();
      }
      own.commit();
      const kept = new Map(settledIn(narrow.current).map((record) => [record.requestId, record]));
      for (const [i, [begin, end]] of all.entries()) {
        const { trail, ...record } = kept.get(`req_${i}`) ?? {};
        const { trail: given, ...usage } = end;
        expect(record).toEqual({ ...begin, requestId: `req_${i}`, ...usage });
        const leftOut = (trail ?? []).reduce((sum, { leftOut = 0 }) => sum + leftOut, 0);
        if (trail) expect(trail.length + leftOut).toBe(given?.length ?? 0);
      }
      for (const segment of narrow.segments) segment.pins = 0;
      await narrow.close();
    }),
  );
});

test("keeps a trail of any length whole while the disk has room", () => {
  const [[begin], [end]] = [fc.sample(begins, 1), fc.sample(ends, 1)];
  if (!begin || !end) throw new Error("nothing was made");
  const long = { upstream: "u", upstreamModel: "m", model: "m", result: "refused", status: 500, startedMs: 0 } as const;
  const trail = Array.from({ length: maxSteps }, (_, n) => ({ ...long, reason: "x".repeat(200), durationMs: n }));
  journal.begin({ ...begin, requestId: "req_long" }, 0).settle({ ...end, trail });
  journal.commit();
  expect(settledIn(spool.current)[0]?.trail).toEqual(trail);
});
