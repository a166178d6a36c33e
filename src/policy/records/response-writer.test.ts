// Tests that responses are stored before their clients get the end of the answer, unless the store takes too long or
// fails.
import { beforeEach, expect, test } from "bun:test";
import type { Log } from "../../base/log.ts";
import type { StoredResponse } from "../../domain/models/stored-response.ts";
import { ResponseWriter } from "./response-writer.ts";

const logged: unknown[] = [];
const note = (event: string, fields?: object) => void logged.push([event, fields]);
const log: Log = { info: note, warn: note, error: note };

beforeEach(() => {
  logged.length = 0;
});

function row(id: string): StoredResponse {
  return {
    ...{ id, accountId: "acct_1", environment: "live", keyId: "key_1", appId: null, personId: null, madeBy: null },
    ...{ model: "m", createdAt: 1, expiresAt: 2, status: "completed", previousId: null, conversationId: null },
    ...{ background: false, response: {}, input: [] },
  };
}

type Insert = (responses: readonly StoredResponse[], mayCommit?: () => boolean) => Promise<void>;

function writerOn(insert: Insert, maxMs = 5_000): ResponseWriter {
  return new ResponseWriter({ responses: { insert }, log, retentionDays: () => 30, maxMs });
}

test("writes concurrent responses together and resolves each after the write", async () => {
  const writes: string[][] = [];
  const writer = writerOn(async (rows) => void writes.push(rows.map(({ id }) => id)));
  expect(await Promise.all(["a", "b", "c"].map((id) => writer.keep(row(id))))).toEqual([true, true, true]);
  expect(writes).toEqual([["a", "b", "c"]]);
  await writer.keep(row("d"));
  expect(writes).toEqual([["a", "b", "c"], ["d"]]);
  expect(logged).toEqual([]);
});

test("limits a write to 10,000 items unless a single response has more", async () => {
  const writes: string[][] = [];
  const writer = writerOn(async (rows) => void writes.push(rows.map(({ id }) => id)));
  const large = (id: string, inputs: number, outputs: number) => ({
    ...row(id),
    input: Array(inputs).fill({}),
    response: { output: Array(outputs).fill({}) },
  });
  const all = [large("a", 6_000, 0), large("b", 0, 4_000), large("c", 1, 0), large("d", 20_000, 0), row("e")];
  await Promise.all(all.map((one) => writer.keep(one)));
  expect(writes).toEqual([["a", "b"], ["c"], ["d"], ["e"]]);
});

test("waits for a slow store until the deadline and commits nothing after it", async () => {
  let written = () => {};
  const done = new Promise<void>((resolve) => {
    written = resolve;
  });
  const writes: string[] = [];
  const committed: string[] = [];
  const writer = writerOn(async (rows, mayCommit) => {
    const ids = rows.map(({ id }) => id);
    writes.push(...ids);
    await done;
    if (mayCommit?.() === false) throw new Error("not wanted any more");
    committed.push(...ids);
  }, 20);
  const first = writer.keep(row("begun"));
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(await Promise.all([first, writer.keep(row("waiting"))])).toEqual([false, false]);
  expect(logged).toEqual([
    ["response_not_stored", { account: "acct_1", reason: "too_slow" }],
    ["response_not_stored", { account: "acct_1", reason: "too_slow" }],
  ]);
  written();
  await writer.close();
  // A response that nobody waits for any more is not kept for a store that comes back.
  expect(writes).toEqual(["begun"]);
  expect(committed).toEqual([]);
  expect(await writer.keep(row("next"))).toBe(true);
  expect(committed).toEqual(["next"]);
  expect(logged).toHaveLength(2);
});

test("retries a failed write until the deadline", async () => {
  let tries = 0;
  const writer = writerOn(async () => {
    if (++tries < 3) throw Object.assign(new Error("locked"), { detail: "the database is locked" });
  });
  await writer.keep(row("a"));
  expect(tries).toBe(3);
  expect(logged).toEqual([["response_write_failed", { count: 1, detail: "the database is locked" }]]);
});

test("stores the other responses if the store rejects one", async () => {
  const written: string[] = [];
  const writer = writerOn(async (rows) => {
    if (rows.some(({ id }) => id === "bad")) throw new Error("not this one");
    for (const { id } of rows) written.push(id);
  }, 1_000);
  await Promise.all(["a", "bad", "b", "c"].map((id) => writer.keep(row(id))));
  expect(written.toSorted()).toEqual(["a", "b", "c"]);
  expect(logged.at(-1)).toEqual(["response_not_stored", { account: "acct_1", reason: "store_failed" }]);
});

test("logs a write that keeps failing once, without its content, and gives up", async () => {
  const writer = writerOn(async () => {
    throw Object.assign(new Error("with SECRET content"), { detail: "the disk is full" });
  }, 250);
  await writer.keep(row("a"));
  await writer.close();
  expect(logged).toEqual([
    ["response_write_failed", { count: 1, detail: "the disk is full" }],
    ["response_not_stored", { account: "acct_1", reason: "store_failed" }],
  ]);
});
