// What is said by those who are told, while they are told: it belongs to the same write of the journal, or to one of its own.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../domain/clock.ts";
import { whenSettled } from "../domain/later.ts";
import type { Log } from "../domain/log.ts";
import type { LedgerEntry, UsageBegin, UsageEnd } from "../domain/usage.ts";
import { LedgerJournal } from "./ledger-journal.ts";
import { prepareSpoolDirectory, type Segment, Spool } from "./spool.ts";
import { readSegment } from "./spool-reader.ts";
import { UsageColumns } from "./usage-columns.ts";

let directory: string;
let spool: Spool;
let journal: LedgerJournal;
/** Where the journal says that each record stands. */
let settled: Map<string, Segment>;

const nobody = () => {};
const log: Log = { info: nobody, warn: nobody, error: nobody };

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-journal-"));
  prepareSpoolDirectory(directory);
  spool = new Spool({ directory, clock: systemClock, segmentBytes: 1_000_000 });
  settled = new Map();
  journal = new LedgerJournal({
    spool,
    log,
    clock: systemClock,
    onSettled: (usage, row, segment) => void settled.set(usage.requestIds[row] ?? "", segment),
    onTurn: nobody,
  });
});

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

/** One that ends as soon as it may begin, as that of a client that left meanwhile. */
function beginAndEnd(requestId: string): LedgerEntry {
  const entry = begin(requestId);
  whenSettled(entry.begun, () => void entry.settle(end), nobody);
  return entry;
}

/** Of the requests whose end stands there. */
function endedIn({ path }: Segment): string[] {
  return [...readSegment(path)].flatMap(({ lines }) =>
    lines.flatMap((line) => ("settle" in line ? [line.settle.requestId] : [])),
  );
}

test("what a request says as it is told that it may begin is written before a new segment begins", () => {
  begin("open");
  beginAndEnd("brief");
  const first = spool.current;
  journal.rotate();
  journal.commit();
  expect(settled.get("brief")).toBe(first);
  expect(endedIn(first)).toEqual(["brief"]);
});

test("once all was written, nothing is left to be written that those who were told of it said", () => {
  begin("open");
  beginAndEnd("brief");
  journal.commit();
  // As whoever adds up what was settled so far relies on.
  expect([...settled.keys()]).toEqual(["brief"]);
});

test("what it says then fails alone where the disk is full for a record that is said again", () => {
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
