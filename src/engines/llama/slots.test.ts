// Tests slots: order of arrival, width, leaving while waiting, resizing and limits.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../base/errors.ts";
import { Slots } from "./slots.ts";

const never = new AbortController().signal;

/** Lets all pending callbacks run. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Starts to wait for slots, and adds `name` to `granted` when they are granted. */
function enter(slots: Slots, name: string, width: number, granted: string[], signal = never) {
  const entry: { release: () => void; failure: unknown } = { release: () => {}, failure: undefined };
  slots.acquire(width, signal).then(
    (release) => {
      entry.release = release;
      granted.push(name);
    },
    (error: unknown) => {
      entry.failure = error;
    },
  );
  return entry;
}

test("grants free slots at once, and later ones in order of arrival", async () => {
  const slots = new Slots(2);
  const granted: string[] = [];
  const entries = ["a", "b", "c", "d"].map((name) => enter(slots, name, 1, granted));
  await settle();
  expect(granted).toEqual(["a", "b"]);
  expect([slots.busy, slots.waiting]).toEqual([2, 2]);
  entries[1]?.release();
  await settle();
  expect(granted).toEqual(["a", "b", "c"]);
  entries[0]?.release();
  entries[2]?.release();
  await settle();
  expect(granted).toEqual(["a", "b", "c", "d"]);
  entries[3]?.release();
  expect([slots.busy, slots.waiting]).toEqual([0, 0]);
});

test("lets no narrow request overtake an earlier wide one", async () => {
  const slots = new Slots(3);
  const granted: string[] = [];
  const first = enter(slots, "first", 2, granted);
  const wide = enter(slots, "wide", 3, granted);
  const narrow = enter(slots, "narrow", 1, granted);
  await settle();
  expect(granted).toEqual(["first"]);
  first.release();
  await settle();
  expect(granted).toEqual(["first", "wide"]);
  wide.release();
  await settle();
  expect(granted).toEqual(["first", "wide", "narrow"]);
  narrow.release();
  expect(slots.busy).toBe(0);
});

test("grants a request wider than the model all slots, and takes as many back", async () => {
  const slots = new Slots(2);
  const release = await slots.acquire(100, never);
  expect(slots.busy).toBe(2);
  release();
  expect(slots.busy).toBe(0);
});

test("counts a slot that is released twice once", async () => {
  const slots = new Slots(2);
  const release = await slots.acquire(1, never);
  release();
  release();
  expect(slots.busy).toBe(0);
});

describe("requests that leave the queue", () => {
  test("removes an aborted request from the queue, and admits the next one", async () => {
    const slots = new Slots(2);
    const granted: string[] = [];
    const holder = enter(slots, "holder", 1, granted);
    const client = new AbortController();
    const wide = enter(slots, "wide", 2, granted, client.signal);
    enter(slots, "narrow", 1, granted);
    await settle();
    expect(granted).toEqual(["holder"]);
    client.abort(new Error("left"));
    await settle();
    expect(wide.failure).toEqual(new Error("left"));
    expect(granted).toEqual(["holder", "narrow"]);
    expect(slots.waiting).toBe(0);
    holder.release();
    expect(slots.busy).toBe(1);
  });

  test("ignores an abort after the grant", async () => {
    const slots = new Slots(1);
    const client = new AbortController();
    const release = await slots.acquire(1, client.signal);
    client.abort();
    expect(slots.busy).toBe(1);
    release();
    expect(slots.busy).toBe(0);
  });

  test("does not queue an aborted request", async () => {
    const slots = new Slots(1);
    await expect(slots.acquire(1, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
    expect([slots.busy, slots.waiting]).toEqual([0, 0]);
  });
});

describe("a changed number of slots", () => {
  test("admits waiting requests at once when slots are added", async () => {
    const slots = new Slots(1);
    const granted: string[] = [];
    for (const name of ["a", "b", "c"]) enter(slots, name, 1, granted);
    await settle();
    slots.resize(3);
    await settle();
    expect(granted).toEqual(["a", "b", "c"]);
    expect(slots.busy).toBe(3);
  });

  test("admits no request after slots were removed until enough are released", async () => {
    const slots = new Slots(3);
    const granted: string[] = [];
    const held = ["a", "b", "c"].map((name) => enter(slots, name, 1, granted));
    enter(slots, "d", 1, granted);
    await settle();
    slots.resize(1);
    held[0]?.release();
    held[1]?.release();
    await settle();
    expect(granted).toEqual(["a", "b", "c"]);
    held[2]?.release();
    await settle();
    expect(granted).toEqual(["a", "b", "c", "d"]);
    expect(slots.busy).toBe(1);
  });

  test("admits a waiting wide request to a reduced model, and takes back no more than granted", async () => {
    const slots = new Slots(4);
    const granted: string[] = [];
    const holder = enter(slots, "holder", 1, granted);
    const wide = enter(slots, "wide", 4, granted);
    await settle();
    slots.resize(2);
    holder.release();
    await settle();
    expect(granted).toEqual(["holder", "wide"]);
    expect(slots.busy).toBe(2);
    wide.release();
    expect(slots.busy).toBe(0);
    // Exactly two more may run now, not four.
    for (const name of ["x", "y", "z"]) enter(slots, name, 1, granted);
    await settle();
    expect(granted).toEqual(["holder", "wide", "x", "y"]);
  });

  test("keeps the requested width of a waiting request when slots are added", async () => {
    const slots = new Slots(2);
    const granted: string[] = [];
    const holder = enter(slots, "holder", 2, granted);
    const wide = enter(slots, "wide", 4, granted);
    await settle();
    slots.resize(8);
    await settle();
    expect(granted).toEqual(["holder", "wide"]);
    holder.release();
    wide.release();
    expect(slots.busy).toBe(0);
  });
});

test("refuses the request after 512 waiting ones at once, with a time to retry", async () => {
  const slots = new Slots(1);
  const clients = new AbortController();
  const granted: string[] = [];
  const waiting = Array.from({ length: 513 }, () => enter(slots, "", 1, granted, clients.signal));
  await settle();
  expect(slots.waiting).toBe(512);
  const refusal = await slots.acquire(1, never).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(GatewayError);
  expect(refusal).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 5 });
  clients.abort();
  await settle();
  expect(slots.waiting).toBe(0);
  waiting[0]?.release();
  expect(slots.busy).toBe(0);
});
