// Background responses in a real database: progress, a single end, cancellation, and abandoned responses.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import {
  conversation,
  day,
  idsOf,
  marked,
  message,
  now,
  owner,
  sealOf,
  stored,
  strangers,
} from "../../../../tests/support/stored-responses.ts";
import type { EventBatch, StoredResponse } from "../../../domain/models/stored-response.ts";
import type { SealFor } from "../../../domain/seal.ts";
import { SqlBackgroundStore } from "./background-store.ts";
import { SqlConversationStore } from "./conversation-store.ts";
import { SqlResponseStore } from "./response-store.ts";

const large = 1_000_000;

let opened: TestDatabase;
let sealFor: SealFor;
let responses: SqlResponseStore;
let store: SqlBackgroundStore;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    sealFor = await sealOf(opened.db);
    responses = new SqlResponseStore(opened.db, sealFor);
    store = new SqlBackgroundStore(opened.db, sealFor);
  });

  afterEach(() => opened.close());

  const queued = (id: string, more: Partial<StoredResponse> = {}) =>
    stored(id, { status: "queued", background: true, response: { id, status: "queued", output: [] }, ...more });
  const output = [message("out", "Hello", "assistant")];
  const running = (events?: EventBatch) => ({
    ...{ status: "in_progress" as const, response: { status: "in_progress", output } },
    ...(events === undefined ? {} : { events }),
  });
  const done = (events?: EventBatch) => ({
    ...{ status: "completed" as const, response: { status: "completed", output } },
    ...(events === undefined ? {} : { events }),
  });

  test("stores the progress of a background response for readers, and keeps its input", async () => {
    await responses.insert([queued("a")]);
    expect(await store.progress("a", running(), now)).toEqual({ status: "in_progress", isCancelled: false });
    const found = await responses.find(owner, "a", now);
    expect(found).toEqual({ ...queued("a"), status: "in_progress", response: running().response });
    expect(await store.progress("never", running(), now)).toBeUndefined();
  });

  test("reports a deleted or expired response as gone, and does not restore it", async () => {
    await responses.insert([queued("a"), queued("b", { expiresAt: now })]);
    await responses.delete(owner, "a", now);
    for (const id of ["a", "b"]) {
      const events = { first: 0, events: ["{}"] };
      expect(await store.progress(id, running(events), now)).toBeUndefined();
      expect(await store.end(id, done(events), now)).toBe(false);
      expect(await store.events(id, -1, large)).toEqual([]);
    }
    const [row] = await opened.db`SELECT response FROM stored_responses WHERE id = 'a'`;
    expect(row.response).toBe("");
  });

  test("stores the end of a response at once: status, items by id, and the chain after it", async () => {
    await responses.insert([queued("a")]);
    await store.progress("a", running(), now);
    expect(await store.end("a", done(), now)).toBe(true);
    expect(await responses.find(owner, "a", now)).toMatchObject({ status: "completed", response: done().response });
    expect([...(await responses.items(owner, ["out", "a_in"], now)).keys()].toSorted()).toEqual(["a_in", "out"]);
    const chain = await responses.chain(owner, "a", now, large);
    expect("items" in chain && idsOf(chain.items)).toEqual(["a_in", "out"]);
    expect("size" in chain && chain.size).toBe(JSON.stringify([queued("a").input[0], output[0]]).length - 3);
  });

  test("lets one of many concurrent ends of a response win, and keeps what it wrote", async () => {
    await responses.insert([queued("a")]);
    // SQLite is one process's alone.
    const processes = databases.dialect === "sqlite" ? [] : [await opened.openAgain(), await opened.openAgain()];
    const others = [store, ...processes.map((one) => new SqlBackgroundStore(one, sealFor))];
    const ends = Array.from({ length: 12 }, (_, i) => {
      const state = { ...done({ first: 0, events: [`${i}`] }), response: { output: [], by: i } };
      return others[i % others.length]?.end("a", state, now);
    });
    const won = await Promise.all(ends);
    expect(won.filter(Boolean)).toHaveLength(1);
    const by = won.indexOf(true);
    expect((await responses.find(owner, "a", now))?.response["by"]).toBe(by);
    expect(await store.events("a", -1, large)).toEqual([{ first: 0, events: [`${by}`] }]);
    expect(await store.progress("a", running(), now)).toEqual({ status: "completed", isCancelled: false });
    expect((await responses.find(owner, "a", now))?.response["by"]).toBe(by);
  });

  test("tells the process of a running response about a cancellation", async () => {
    await responses.insert([queued("a", marked)]);
    const mine = { ...owner, ...marked };
    for (const other of strangers) {
      expect(await store.requestCancel({ ...mine, ...other }, "a", now)).toBeUndefined();
    }
    expect(await store.progress("a", running(), now)).toMatchObject({ isCancelled: false });
    expect(await store.requestCancel(mine, "a", now)).toMatchObject({ id: "a", status: "in_progress" });
    expect(await store.requestCancel(mine, "a", now + 1)).toMatchObject({ id: "a", status: "in_progress" });
    expect(await store.progress("a", running(), now)).toEqual({ status: "in_progress", isCancelled: true });
    await store.end("a", { status: "cancelled", response: { output: [] } }, now);
    expect(await store.requestCancel(mine, "a", now)).toMatchObject({ status: "cancelled" });
    expect(await store.requestCancel(mine, "never", now)).toBeUndefined();
  });

  test("does not cancel a response that has ended", async () => {
    await responses.insert([queued("a")]);
    await store.end("a", done(), now);
    const asked = await store.requestCancel(owner, "a", now);
    expect(asked).toMatchObject({ status: "completed" });
    // `requestCancel` does not return the content, which is read only in the turn of its account.
    expect(asked).not.toContainAnyKeys(["input", "response"]);
    expect(await store.progress("a", running(), now)).toEqual({ status: "completed", isCancelled: false });
  });

  test("returns events in order after a given number, about as many as requested, each once", async () => {
    await responses.insert([queued("a"), queued("b")]);
    await store.progress("a", running({ first: 0, events: ["0", "1", "2"] }), now);
    await store.progress("a", running({ first: 3, events: ["3"] }), now);
    await store.progress("a", running({ first: 4, events: [] }), now);
    await store.progress("b", running({ first: 0, events: ["of b"] }), now);
    await store.end("a", done({ first: 4, events: ["4", "5"] }), now);
    const [first, second, third] = [
      { first: 0, events: ["0", "1", "2"] },
      { first: 3, events: ["3"] },
      { first: 4, events: ["4", "5"] },
    ];
    expect(await store.events("a", -1, large)).toEqual([first, second, third]);
    expect(await store.events("a", 0, large)).toEqual([{ first: 1, events: ["1", "2"] }, second, third]);
    expect(await store.events("a", 2, large)).toEqual([second, third]);
    expect(await store.events("a", 5, large)).toEqual([]);
    expect(await store.events("a", -1, 3)).toEqual([first]);
    expect(await store.events("a", -1, 1)).toEqual([first]);
    expect(await store.events("a", 2, 3)).toEqual([second, third]);
  });

  test("loses no event when a writer repeats an unconfirmed write with newer events", async () => {
    await responses.insert([queued("a")]);
    await store.progress("a", running({ first: 0, events: ["0"] }), now);
    await store.progress("a", running({ first: 0, events: ["0", "1"] }), now);
    // A write that arrives late changes nothing.
    await store.progress("a", running({ first: 0, events: ["0"] }), now);
    expect(await store.events("a", -1, large)).toEqual([{ first: 0, events: ["0", "1"] }]);
    await store.end("a", done({ first: 0, events: ["0", "1", "2"] }), now);
    expect(await store.events("a", 0, large)).toEqual([{ first: 1, events: ["1", "2"] }]);
    expect(await store.lastEvent("a")).toBe(2);
  });

  test("keeps an unchanged response without writing it again", async () => {
    await responses.insert([queued("a")]);
    await store.progress("a", running(), now);
    const [before] = await opened.db`SELECT response FROM stored_responses WHERE id = 'a'`;
    await store.progress("a", { status: "in_progress", events: { first: 0, events: ["0"] } }, now + 1);
    const [after] = await opened.db`SELECT response, seen_at FROM stored_responses WHERE id = 'a'`;
    expect([after.response, Number(after.seen_at)]).toEqual([before.response, now + 1]);
  });

  test("returns the status and last event number of a response without its content", async () => {
    await responses.insert([queued("a")]);
    expect([await store.state("a", now), await store.lastEvent("a")]).toEqual([
      { status: "queued", isCancelled: false },
      -1,
    ]);
    await store.progress("a", running({ first: 0, events: ["0", "1"] }), now);
    await store.end("a", done({ first: 2, events: ["2"] }), now);
    expect([await store.state("a", now), await store.lastEvent("a")]).toEqual([
      { status: "completed", isCancelled: false },
      2,
    ]);
    await responses.delete(owner, "a", now);
    expect([await store.state("a", now), await store.lastEvent("a")]).toEqual([undefined, -1]);
  });

  test("lists abandoned responses, oldest first, and none that ended or was deleted", async () => {
    await responses.insert([
      queued("waits"),
      ...["works", "ended", "deleted", "older"].map((id) => queued(id)),
      stored("not-in-background"),
    ]);
    await store.progress("older", running(), now - 5);
    await store.progress("works", running(), now + 20);
    await store.end("ended", done(), now);
    await responses.delete(owner, "deleted", now);
    const idsBefore = async (seconds: number, limit = 10) =>
      (await store.abandoned(seconds, now, limit)).map(({ id }) => id);
    expect(await idsBefore(now + 10)).toEqual(["older", "waits"]);
    expect(await idsBefore(now + 10, 1)).toEqual(["older"]);
    expect(await idsBefore(now - 5)).toEqual([]);
    expect((await store.abandoned(now + 10, now, 10))[0]).toEqual({ id: "older", seenAt: now - 5 });
    // An expired response is not listed as abandoned, so it takes no other response's place in the list.
    await responses.insert([queued("expires", { expiresAt: now + 20, createdAt: now - 50 })]);
    expect((await store.abandoned(now + 10, now + 20, 1)).map(({ id }) => id)).toEqual(["older"]);
  });

  const failed = (response: Readonly<Record<string, unknown>>, number: number) => ({
    response: { ...response, status: "failed" },
    event: `${number}`,
  });

  test("ends an abandoned response as failed once for many processes, after its last event", async () => {
    await responses.insert([queued("a")]);
    await store.progress("a", running({ first: 0, events: ["0", "1"] }), now);
    // SQLite is one process's alone.
    const processes = databases.dialect === "sqlite" ? [] : [await opened.openAgain(), await opened.openAgain()];
    const others = [store, ...processes.map((one) => new SqlBackgroundStore(one, sealFor))];
    const abandoned = { id: "a", seenAt: now };
    const ends = await Promise.all(
      Array.from({ length: 9 }, (_, i) => others[i % others.length]?.endAbandoned(abandoned, failed, now + 90)),
    );
    expect(ends.filter(Boolean)).toHaveLength(1);
    expect(await responses.find(owner, "a", now)).toMatchObject({ status: "failed", response: { status: "failed" } });
    expect(await store.events("a", 1, large)).toEqual([{ first: 2, events: ["2"] }]);
    expect([...(await responses.items(owner, ["out"], now)).keys()]).toEqual(["out"]);
    expect(await store.abandoned(now + 1_000, now, 10)).toEqual([]);
    // The process of the response was not dead, and goes on.
    expect(await store.progress("a", running({ first: 2, events: ["late"] }), now + 91)).toMatchObject({
      status: "failed",
    });
    expect(await store.end("a", done({ first: 2, events: ["late"] }), now + 91)).toBe(false);
    expect(await store.events("a", -1, large)).toEqual([
      { first: 0, events: ["0", "1"] },
      { first: 2, events: ["2"] },
    ]);
  });

  test("does not end a response that was worked on meanwhile", async () => {
    await responses.insert([queued("a")]);
    const [seen] = await store.abandoned(now + 1, now, 1);
    if (!seen) throw new Error("It is not abandoned.");
    await store.progress("a", running(), now + 1);
    expect(await store.endAbandoned(seen, failed, now + 90)).toBe(false);
    expect(await store.state("a", now)).toEqual({ status: "in_progress", isCancelled: false });
  });

  test("ends an abandoned response that cannot be decrypted, without blocking others", async () => {
    await responses.insert([queued("a")]);
    await opened.db`UPDATE stored_responses SET response = 'closed' WHERE id = 'a'`;
    expect(await store.endAbandoned({ id: "a", seenAt: now }, failed, now + 90)).toBe(true);
    expect(await store.abandoned(now + 1_000, now, 10)).toEqual([]);
  });

  test("adds a response's items to its conversation when it completes, and none otherwise", async () => {
    const conversations = new SqlConversationStore(opened.db, sealFor);
    await conversations.create(conversation("conv_1"), [message("m1", "first")]);
    const more = { conversationId: "conv_1", expiresAt: now + 2 * day };
    await responses.insert([queued("a", more), queued("b", more), queued("c", more)]);
    const ids = async () => {
      const all = await conversations.all(owner, "conv_1", now, large);
      return "items" in all ? idsOf(all.items) : all;
    };
    await store.end("b", { ...done(), status: "failed" }, now);
    await store.end("c", { ...done(), status: "cancelled" }, now);
    expect(await ids()).toEqual(["m1"]);
    await store.end("a", done(), now);
    expect(await ids()).toEqual(["m1", "a_in", "out"]);
    expect(await conversations.find(owner, "conv_1", now)).toMatchObject({ expiresAt: now + 2 * day });
  });
});
