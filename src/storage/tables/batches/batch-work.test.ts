// Work on batches that several processes share: one process at a time has a line, and each line is answered once.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { batchOf } from "../../../../tests/support/batches.ts";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { sealOf } from "../../../../tests/support/stored-responses.ts";
import type { Claim, ClaimedLine, LineUsage } from "../../../domain/batches/batch.ts";
import type { ResponseOwner } from "../../../domain/models/stored-response.ts";
import { SqlBatchStore } from "./batch-store.ts";
import { SqlBatchWork } from "./batch-work.ts";

const owner: ResponseOwner = { accountId: "acct_1", environment: "live", appId: null, personId: null, madeBy: null };
const claimOf = (id: string, leaseSeconds = 60): Claim => ({ id, leaseSeconds });
const [one, two] = [claimOf("one"), claimOf("two")];

const usage: LineUsage = {
  begin: {
    ...{ requestId: "req_1", at: 1, accountId: "acct_1", keyId: "key_1", appId: null, environment: "live" },
    ...{ operation: "chat", model: "m", stream: false },
  },
  end: {
    ...{ promptTokens: 3, completionTokens: 4, estimated: false, outcome: "completed", errorCode: null, nanoUsd: 5 },
    parts: { cachedTokens: 1, cacheWriteTokens: 0, reasoningTokens: 2 },
    ...{ capped: false, upstream: "up", durationMs: 1, firstTokenMs: null, queueMs: 0 },
  },
};

onEachDatabase(({ open }) => {
  let database: TestDatabase;
  let store: SqlBatchStore;
  let work: SqlBatchWork;
  beforeEach(async () => {
    database = await open();
    store = new SqlBatchStore(database.db);
    work = new SqlBatchWork(database.db, await sealOf(database.db));
  });
  afterEach(() => database.close());

  /** Makes a batch in progress with this many lines. */
  async function begun(id: string, total: number): Promise<void> {
    await store.create(batchOf(id), 10);
    expect((await work.claimBatch(one))?.id).toBe(id);
    expect(await work.beginLines(id, one)).toBe(true);
    const lines = Array.from({ length: total }, (_, n) => {
      return { batchId: id, line: n + 1, customId: `c${n}`, model: n % 2 === 0 ? "even" : "odd", start: n, end: n + 1 };
    });
    expect(await work.addLines(id, lines, one)).toBe(true);
    expect(await work.begin({ id, models: ["even", "odd"], total }, one, 2_000)).toBe(true);
  }

  const claim = (id: string, limit: number, by: Claim, models = ["even", "odd"]) =>
    work.claimLines(id, models, limit, by);
  const numbers = (lines: readonly { line: number }[]) => lines.map(({ line }) => line).toSorted((a, b) => a - b);

  describe("a batch", () => {
    test("reads back a batch as created, and limits the open batches of an account", async () => {
      expect(await store.create(batchOf("b1"), 2)).toBe(true);
      expect(await store.create(batchOf("b2", { createdAt: 1_001 }), 2)).toBe(true);
      expect(await store.create(batchOf("b3"), 2)).toBe(false);
      expect(await store.find(owner, "b1")).toEqual(batchOf("b1"));
      expect(await store.find({ ...owner, accountId: "acct_2" }, "b1")).toBeUndefined();
      const page = { form: undefined, after: undefined, before: undefined, limit: 10 };
      const ids = async (more: object) => (await store.list(owner, { ...page, ...more }))?.map(({ id }) => id);
      expect(await ids({})).toEqual(["b2", "b1"]);
      expect(await ids({ after: "b2" })).toEqual(["b1"]);
      expect(await ids({ before: "b1" })).toEqual(["b2"]);
      expect([await ids({ form: "anthropic" }), await ids({ after: "none" })]).toEqual([[], undefined]);
    });

    test("gives the validation of a batch to one process until its lease ends", async () => {
      await store.create(batchOf("b1"), 10);
      const [first, second] = await Promise.all([work.claimBatch(one), work.claimBatch(two)]);
      expect([first, second].filter((claimed) => claimed !== undefined).length).toBe(1);
      await work.releaseAll();
      expect((await work.claimBatch(claimOf("dead", 0)))?.id).toBe("b1");
      expect((await work.claimBatch(two))?.id).toBe("b1");
      expect(await work.begin({ id: "b1", models: [], total: 0 }, claimOf("dead"), 1)).toBe(false);
      expect(await work.fail("b1", two, [{ code: "c", message: "m", line: 1, param: null }], 5)).toBe(true);
      expect(await store.find(owner, "b1")).toMatchObject({ status: "failed", endedAt: 5, faults: [{ line: 1 }] });
    });

    test("lets either the validating process begin a batch or another one claim it, never both", async () => {
      await store.create(batchOf("b1"), 10);
      // The lease ends at once, so both processes may try.
      await work.claimBatch(claimOf("late", 0));
      const [claimed, isBegun] = await Promise.all([
        work.claimBatch(two),
        work.begin({ id: "b1", models: ["m"], total: 1 }, claimOf("late"), 1),
      ]);
      expect(claimed === undefined).toBe(isBegun);
    });

    test("protects the lines of a batch from a process that lost the batch", async () => {
      await store.create(batchOf("b1"), 10);
      await work.claimBatch(claimOf("dead", 0));
      await work.claimBatch(two);
      const line = { batchId: "b1", line: 1, customId: "a", model: "m", start: 0, end: 1 };
      expect(await work.addLines("b1", [line], two)).toBe(true);
      expect(await work.beginLines("b1", claimOf("dead"))).toBe(false);
      expect(await work.lines("b1", 0, 9)).toHaveLength(1);
    });

    test("rotates between accounts in the validation of batches", async () => {
      for (const id of ["b1", "b2", "b3"]) await store.create(batchOf(id), 10);
      await store.create(batchOf("late", { accountId: "acct_2", createdAt: 2_000 }), 10);
      const order: (string | undefined)[] = [];
      let account: string | undefined;
      for (let n = 0; n < 4; n++) {
        const batch = await work.claimBatch(one, account);
        order.push(batch?.id);
        account = batch?.accountId;
      }
      expect([order[1], order.toSorted()]).toEqual(["late", ["b1", "b2", "b3", "late"]]);
    });

    test("adds no lines to a batch that was cancelled during validation, as none would be deleted", async () => {
      await store.create(batchOf("b1"), 10);
      await work.claimBatch(one);
      await work.beginLines("b1", one);
      const line = { batchId: "b1", line: 1, customId: "a", model: "m", start: 0, end: 1 };
      await store.cancel(owner, "b1", 7);
      expect(await work.addLines("b1", [line], one)).toBe(false);
      expect(await work.lines("b1", 0, 9)).toEqual([]);
    });

    test("answers no more lines of a cancelled batch, which ends as cancelled", async () => {
      await begun("b1", 3);
      const [line] = await claim("b1", 1, one);
      expect(await store.cancel(owner, "b1", 7)).toMatchObject({ status: "finalizing", ending: "cancelled" });
      expect(await work.answered(line as ClaimedLine, { text: "x", isError: false, usage }, one)).toBe(false);
      expect(await claim("b1", 3, two)).toEqual([]);
      expect((await work.claimBatch(two))?.ending).toBe("cancelled");
      const ended = { id: "b1", ending: "cancelled" as const, outputFileId: null, errorFileId: "file-2" };
      expect(await work.finish(ended, two, 8)).toBe(true);
      expect(await store.cancel(owner, "b1", 9)).toMatchObject({ status: "cancelled", endedAt: 8 });
      expect([await work.forgetLines(2), await work.forgetLines(2), await work.forgetLines(2)]).toEqual([2, 1, 0]);
      expect([await store.deleteEnded(8, 10), await store.deleteEnded(9, 10)]).toEqual([0, 1]);
    });

    test("keeps all lines of an Anthropic batch that was cancelled during validation, and answers none", async () => {
      await store.create(batchOf("b1", { form: "anthropic" }), 10);
      await work.claimBatch(one);
      await work.beginLines("b1", one);
      expect(await store.cancel(owner, "b1", 7)).toMatchObject({ ending: "cancelled", cancellingAt: 7, endedAt: null });
      const line = { batchId: "b1", line: 1, customId: "a", model: "m", start: 0, end: 1 };
      expect(await work.addLines("b1", [line], one)).toBe(true);
      expect(await work.begin({ id: "b1", models: ["m"], total: 1 }, one, 8)).toBe(true);
      expect(await claim("b1", 1, one, ["m"])).toEqual([]);
      expect(await work.claimBatch(two)).toMatchObject({ status: "finalizing", ending: "cancelled", total: 1 });
    });

    test("deletes a batch with its remaining lines only after it has ended", async () => {
      await begun("b1", 300);
      expect(await store.delete(owner, "b1")).toBe(false);
      await store.cancel(owner, "b1", 7);
      await work.claimBatch(one);
      await work.finish({ id: "b1", ending: "cancelled", outputFileId: null, errorFileId: null }, one, 8);
      expect(await store.delete({ ...owner, accountId: "acct_2" }, "b1")).toBe(false);
      expect(await store.delete(owner, "b1")).toBe(true);
      expect([await store.find(owner, "b1"), await work.lines("b1", 0, 9)]).toEqual([undefined, []]);
    });

    test("completes a batch once each line has an answer or an error, and adds up the tokens", async () => {
      await begun("b1", 2);
      const lines = await claim("b1", 2, one);
      for (const line of lines) await work.answered(line, { text: "x", isError: line.line === 2, usage }, one);
      await work.endDue(8_999);
      expect(await store.find(owner, "b1")).toMatchObject({
        ...{ status: "finalizing", ending: "completed", completed: 1, failed: 1 },
        ...{ promptTokens: 6, cachedTokens: 2, completionTokens: 8, reasoningTokens: 4 },
      });
    });

    test("ends a batch when all lines are answered or its time is over", async () => {
      await begun("b1", 2);
      await begun("b2", 2);
      for (const line of await claim("b1", 2, one))
        await work.answered(line, { text: "x", isError: false, usage }, one);
      await work.endDue(8_999);
      expect(await store.find(owner, "b1")).toMatchObject({ status: "finalizing", ending: "completed" });
      expect(await store.find(owner, "b2")).toMatchObject({ status: "in_progress", ending: null });
      await work.endDue(9_000);
      expect(await store.find(owner, "b2")).toMatchObject({ status: "finalizing", ending: "expired" });
    });
  });

  describe("a batch line", () => {
    test("neither counts nor bills a line that is answered after its batch expired", async () => {
      await begun("b1", 2);
      const [line] = await claim("b1", 1, one);
      await work.endDue(9_000);
      expect(await work.answered(line as ClaimedLine, { text: "x", isError: false, usage }, one)).toBe(false);
      expect(await store.find(owner, "b1")).toMatchObject({ completed: 0, failed: 0, promptTokens: 0 });
      expect([(await work.lines("b1", 0, 9))[0]?.answer, await work.unpaid(9, "b1")]).toEqual([null, []]);
    });

    test("lets one of many concurrent processes claim a line", async () => {
      await begun("b1", 40);
      const claims = await Promise.all(Array.from({ length: 8 }, (_, n) => claim("b1", 10, claimOf(String(n)))));
      // The claims together have all lines, each once.
      expect(numbers(claims.flat())).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
    });

    test("claims lines only for their own model", async () => {
      await begun("b1", 4);
      expect(numbers(await claim("b1", 9, one, ["odd"]))).toEqual([2, 4]);
      expect(await claim("b1", 9, one, ["none"])).toEqual([]);
    });

    test("accepts one answer for a line, and none from a process that lost its claim", async () => {
      await begun("b1", 1);
      const [lost] = await claim("b1", 1, claimOf("dead", 0));
      const [line] = await claim("b1", 1, two);
      const answer = (text: string, by: Claim) =>
        work.answered(line as ClaimedLine, { text, isError: false, usage }, by);
      expect(lost?.line).toBe(1);
      expect([await answer("late", claimOf("dead")), await answer("good", two), await answer("again", two)]).toEqual([
        ...[false, true, false],
      ]);
      expect(await work.lines("b1", 0, 9)).toEqual([
        { line: 1, customId: "c0", answer: { text: "good", isError: false } },
      ]);
      expect(await store.find(owner, "b1")).toMatchObject({
        ...{ completed: 1, failed: 0, promptTokens: 3, cachedTokens: 1, completionTokens: 4, reasoningTokens: 2 },
      });
    });

    test("gives out a returned line again, after a pause if requested", async () => {
      await begun("b1", 2);
      for (const line of await claim("b1", 2, one)) {
        await work.releaseLine(line, one, { inSeconds: line.line === 1 ? 0 : 60, failed: line.line === 1 });
      }
      expect(await claim("b1", 2, two)).toMatchObject([{ line: 1, attempts: 1 }]);
    });

    test("counts no attempt for a line that is returned without a failure", async () => {
      await begun("b1", 1);
      for (const line of await claim("b1", 1, one)) await work.releaseLine(line, one, { inSeconds: 0, failed: false });
      expect(await claim("b1", 1, two)).toMatchObject([{ line: 1, attempts: 0 }]);
    });

    test("bills nothing for a line that used nothing", async () => {
      await begun("b1", 1);
      const [line] = await claim("b1", 1, one);
      await work.answered(line as ClaimedLine, { text: "x", isError: true, usage: undefined }, one);
      expect(await work.unpaid(9, "b1")).toEqual([]);
    });

    test("renews the claims of lines that a process works on, and no merely claimed ones", async () => {
      await begun("b1", 3);
      const [first, second] = await claim("b1", 2, claimOf("busy", 60));
      await database.db`UPDATE batch_lines SET claimed_until = claimed_until - 60`;
      const lines = [first as ClaimedLine, { batchId: "b1", line: 3 }];
      await work.renew(claimOf("busy", 60), { batchId: "b1", lines });
      expect(numbers(await claim("b1", 9, two))).toEqual([second?.line ?? 0, 3]);
    });

    test("keeps a line unbilled until the ledger has it, for its claimant or after the lease for any process", async () => {
      await begun("b1", 2);
      const lines = await claim("b1", 2, claimOf("dying", 60));
      for (const line of lines) await work.answered(line, { text: "x", isError: false, usage }, claimOf("dying"));
      expect(await work.unpaid(9)).toEqual([]);
      await database.db`UPDATE batch_lines SET claimed_until = claimed_until - 60`;
      await work.renew(claimOf("dying"), { batchId: undefined, lines });
      expect(await work.unpaid(9)).toEqual(lines.map(({ batchId, line }) => ({ batchId, line, usage })));
      await work.paid([{ batchId: "b1", line: 1 }]);
      expect(numbers(await work.unpaid(9, "b1"))).toEqual([2]);
    });
  });
});
