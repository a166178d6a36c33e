// The lines and frames of the spool, which the next start, or an earlier version after a rollback, reads.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Trail, TrailStep } from "../../src/domain/usage/trail.ts";
import type { UsageBegin, UsageRecord } from "../../src/domain/usage/usage.ts";
import type { UsageDetails, UsageParts } from "../../src/domain/usage/usage-parts.ts";
import { Spool } from "../../src/ledger/spool.ts";
import { SpoolEncoder } from "../../src/ledger/spool-encoder.ts";
import { decodeLine, decodeOldLine, type SpoolLine, type UsageProgress } from "../../src/ledger/spool-format.ts";
import { readSegment } from "../../src/ledger/spool-reader.ts";
import { UsageColumns } from "../../src/ledger/usage/usage-columns.ts";
import { requestKindOf } from "../../src/ledger/usage/usage-kinds.ts";
import { manualClock } from "../support/manual-clock.ts";
import { committed, expectCommitted } from "./committed.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-golden-"));
afterAll(() => rmSync(directory, { recursive: true }));

const begin: Required<UsageBegin> = {
  requestId: "req_1",
  at: 1_790_000_000,
  accountId: "acct_1",
  keyId: "key_1",
  appId: "app_1",
  environment: "live",
  operation: "chat",
  model: 'mödel "a"',
  stream: true,
  tags: ["team:blue", "job"],
};
const bareBegin: UsageBegin = {
  ...{ requestId: "req_2", at: 1_790_000_001, accountId: "acct_1", keyId: "key_2", appId: null },
  ...{ environment: "test", operation: "embedding", model: "m", stream: false },
};
const details: Required<UsageDetails> = {
  ...{ cacheWriteHourTokens: 1, inputAudioTokens: 2, inputImageTokens: 3, outputAudioTokens: 4, outputImageTokens: 5 },
  ...{ searches: 6, documents: 7, searchUnits: 8, characters: 9, seconds: 10, images: 11, bytesIn: 12, bytesOut: 13 },
  ...{ toolErrors: 1, replayed: 1, served: ["priority", "eu"], billedNanoUsd: 14 },
};
const parts: Required<UsageParts> = { cachedTokens: 21, cacheWriteTokens: 22, reasoningTokens: 23, details };
const step: Required<TrailStep> = {
  ...{ upstream: "north", upstreamModel: "m-1", model: "m", result: "refused", status: 503, reason: "busy" },
  ...{ startedMs: 1, durationMs: 2, leftOut: 3 },
};
const trail: Trail = [
  step,
  {
    ...{ upstream: null, upstreamModel: null, model: "m", result: "away", status: null, reason: null },
    ...{ startedMs: 3, durationMs: 0 },
  },
];
const progress: UsageProgress = {
  ...{ requestId: "req_1", promptTokens: 101, completionTokens: 102, estimated: true, nanoUsd: 103, elapsedMs: 104 },
  parts,
};
const bareProgress: UsageProgress = {
  ...{ requestId: "req_2", promptTokens: 1, completionTokens: 2, estimated: false, nanoUsd: null, elapsedMs: 3 },
};
const settle: UsageRecord = {
  ...begin,
  ...{ promptTokens: 201, completionTokens: 202, estimated: true, outcome: "failed", errorCode: "upstream_error" },
  ...{ nanoUsd: 203, capped: true, upstream: "north", durationMs: 204, firstTokenMs: 205, queueMs: 206, trail, parts },
};
const bareSettle: UsageRecord = {
  ...bareBegin,
  ...{ promptTokens: 1, completionTokens: 2, estimated: false, outcome: "completed", errorCode: null, nanoUsd: null },
  ...{ capped: false, upstream: null, durationMs: 3, firstTokenMs: null, queueMs: 0 },
};
const lines = {
  begin: { begin },
  "begin without an app or tags": { begin: bareBegin },
  progress: { progress },
  "progress without parts": { progress: bareProgress },
  settle: { settle },
  "settle without options": { settle: bareSettle },
} satisfies Record<string, SpoolLine>;

/** Lines of the first version, which had neither frames nor arrays. */
const oldLines = {
  "begin of the first version":
    '1d216aa7 {"begin":{"requestId":"req_2","at":1790000001,"accountId":"acct_1","keyId":"key_2","appId":null,"environment":"test","operation":"embedding","model":"m","stream":false}}',
  "progress of the first version":
    'f4e274d1 {"progress":{"requestId":"req_2","promptTokens":1,"completionTokens":2,"estimated":false,"nanoUsd":null,"elapsedMs":3}}',
  "settle of the first version":
    'd95737a9 {"settle":{"requestId":"req_2","at":1790000001,"accountId":"acct_1","keyId":"key_2","appId":null,"environment":"test","operation":"embedding","model":"m","stream":false,"promptTokens":1,"completionTokens":2,"estimated":false,"outcome":"completed","errorCode":null,"nanoUsd":null,"capped":false,"upstream":null,"durationMs":3,"firstTokenMs":null,"queueMs":0}}',
};

function put(encoder: SpoolEncoder, line: SpoolLine): void {
  if ("begin" in line) encoder.begin(line.begin, requestKindOf(line.begin));
  else if ("progress" in line) encoder.progress(line.progress);
  else encoder.settle(UsageColumns.of([line.settle]), 0);
}

const frameOf = (line: SpoolLine) => {
  const encoder = new SpoolEncoder();
  put(encoder, line);
  return Buffer.from(encoder.take());
};
const lineOf = (frame: Buffer) => frame.subarray(frame.indexOf("\n") + 1, -1);

test("writes every kind of spool line as committed", () => {
  const written = Object.entries(lines).map(([name, line]) => [name, frameOf(line)]);
  expectCommitted("spool", { ...Object.fromEntries(written), ...oldLines });
});

test("reads every committed kind of spool line", () => {
  const found = committed("spool");
  for (const [name, line] of Object.entries(lines)) {
    expect([name, decodeLine(lineOf(found[name] ?? Buffer.of()))]).toEqual([name, line]);
  }
  const old = Object.keys(oldLines).map((name) => decodeOldLine(found[name] ?? Buffer.of()));
  expect(old).toEqual([{ begin: bareBegin }, { progress: bareProgress }, { settle: bareSettle }]);
});

test("writes the committed frames to a segment file and reads them back", async () => {
  const spool = new Spool({ directory, clock: manualClock(), segmentBytes: 1 << 20, writer: 3 });
  spool.current.pins++;
  const { path } = spool.current;
  for (const line of Object.values(lines)) spool.append(frameOf(line));
  await spool.close();
  const frames = Object.keys(lines).map((name) => committed("spool")[name] ?? Buffer.of());
  expect(path).toBe(join(directory, "3000000000001.spool"));
  expect(readFileSync(path)).toEqual(Buffer.concat(frames));
  writeFileSync(path, Buffer.concat(frames));
  expect([...readSegment(path)].flatMap((chunk) => chunk.lines)).toEqual(Object.values(lines));
});
