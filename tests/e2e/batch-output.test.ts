// Files of batches are whole: the output that several processes finish, as one lost its lease, and the input that is validated.
import { afterAll, expect, test } from "bun:test";
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { finishBatch } from "../../src/batches/finish-batch.ts";
import { validateBatch } from "../../src/batches/validate-batch.ts";
import type { AnsweredLine } from "../../src/domain/batches/batch.ts";
import { StoredFiles } from "../../src/files/stored-files.ts";
import { DiskObjects } from "../../src/storage/objects/disk-objects.ts";
import { SqlFileStore } from "../../src/storage/tables/files/file-store.ts";
import { SqlUploadStore } from "../../src/storage/tables/files/upload-store.ts";
import { batchOf } from "../support/batches.ts";
import { sqliteDatabases } from "../support/databases.ts";
import { now, owner } from "../support/stored-responses.ts";

const database = await sqliteDatabases().open();
afterAll(() => database.close());
const objects = new DiskObjects(join(database.directory, "files"));
await objects.open(now * 1_000);
const clock = { ...systemClock, nowSeconds: () => now };
const files = new SqlFileStore(database.db);
const storedFiles = new StoredFiles({
  ...{ files, uploads: new SqlUploadStore(database.db), objects, clock },
  bounds: { maxBytes: 1_000, accountBytes: 10_000_000, retentionDays: 30 },
});
const batch = batchOf("batch_1", { ending: "completed" });
const answered = (line: number): AnsweredLine => {
  return { line, customId: `c${line}`, answer: { text: `{"line":${line}}`, isError: false } };
};

/** One who finishes the batch: how its lines are read, and whether the batch is still claimed by it. */
function finisher(isMine: boolean, lines: (after: number) => Promise<AnsweredLine[]>) {
  const given: (string | null)[] = [];
  const work = {
    lines: (_: string, after: number) => lines(after),
    async finish({ outputFileId }: { outputFileId: string | null }) {
      given.push(outputFileId);
      return isMine;
    },
  };
  const finished = finishBatch(batch, { id: "x", leaseSeconds: 30 }, { work, storedFiles, nowSeconds: () => now });
  return { given, finished };
}

test("does not change a batch's output file from a process that lost its lease while writing", async () => {
  const stalled = Promise.withResolvers<AnsweredLine[]>();
  const wrote = Promise.withResolvers<void>();
  const slow = finisher(false, (after) => {
    if (after === 0) return Promise.resolve([answered(1)]);
    wrote.resolve();
    return stalled.promise;
  });
  await wrote.promise;
  const quick = finisher(true, async (after) => (after === 0 ? [answered(1), answered(2)] : []));
  expect(await quick.finished).toBe(true);
  // By now the lines are deleted, as the batch has ended.
  stalled.resolve([]);
  expect(await slow.finished).toBe(false);
  const id = quick.given[0] ?? "";
  const kept = await files.find(owner, id, now);
  expect(kept).toMatchObject({ filename: "batch_1_output.jsonl", bytes: 22 });
  const pieces = await Array.fromAsync(storedFiles.readNamed(id));
  expect(Buffer.concat(pieces).toString()).toBe('{"line":1}\n{"line":2}\n');
  const page = { after: undefined, limit: 10, order: "asc" as const, purpose: undefined };
  expect((await files.list(owner, page, now))?.map((one) => one.id)).toEqual([id]);
});

test("runs no request of a batch whose input file is truncated, and does not blame the client", async () => {
  const { accountId, environment, keyId, appId, personId, madeBy } = batch;
  const about = { filename: "in.jsonl", purpose: "batch" as const };
  const file = await storedFiles.begin(
    { accountId, environment, keyId, appId, personId, madeBy },
    { ...about, bytes: 0 },
  );
  const line = (id: string) => {
    const body = { model: "m", messages: [{ role: "user", content: "Hi" }] };
    return JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body });
  };
  await file.write(Buffer.from(`${line("a")}\n${line("b")}\n`));
  const { id } = await file.finish({ ...about, keepSeconds: null });
  const validating = () =>
    validateBatch(
      batchOf("batch_2", { inputFileId: id }),
      { id: "x", leaseSeconds: 30 },
      {
        ...{ storedFiles, mostRequests: 10, requestLimits: () => ({ bodyBytes: 10_000, depth: 64, messages: 100 }) },
        work: { beginLines: async () => true, addLines: async () => true },
      },
    );
  expect(await validating()).toEqual({ models: ["m"], total: 2 });
  const path = join(database.directory, "files", id.slice(-2), id);
  // At a line's end, where the requests would be fewer in silence, and within a line, which would be no JSON.
  for (const bytes of [line("a").length + 1, 10, 0]) {
    truncateSync(path, bytes);
    await expect(validating()).rejects.toMatchObject({
      code: "service_unavailable",
      detail: "files: other_length",
    });
  }
  await objects.delete(id);
  expect(await validating()).toMatchObject({ faults: [{ code: "input_file_not_found" }] });
  await files.forget([id]);
  expect(await validating()).toMatchObject({ faults: [{ code: "input_file_not_found" }] });
});
