// Tests a process among others on one database: how many share the limits, and when several count limits separately.
import { afterEach, expect, test } from "bun:test";
import { until } from "../../../tests/support/headrace.ts";
import type { LogFields } from "../../base/log.ts";
import type { Replica } from "../../domain/replica.ts";
import { Replicas, type ReplicasOptions } from "./replicas.ts";

let replicas: Replicas | undefined;
afterEach(() => replicas?.close());

function make(options: Partial<ReplicasOptions> = {}) {
  const world = {
    others: [] as Replica[],
    own: { startedAt: 100, seenAt: 100 },
    isAway: false,
    beats: 0,
    removed: [] as string[],
    received: [] as [string, LogFields | undefined][],
  };
  const say = (event: string, fields?: LogFields) => void world.received.push([event, fields]);
  const made = new Replicas({
    store: {
      async beat({ id, advertiseUrl, version }) {
        world.beats++;
        if (world.isAway) throw new Error("away");
        return [...world.others, { id, advertiseUrl, version, ...world.own }];
      },
      async remove(id) {
        if (world.isAway) throw new Error("away");
        world.removed.push(id);
      },
    },
    ...{ advertiseUrl: null, version: "1", isShared: true, sharesLimits: false, beatMs: 3_600_000 },
    log: { info: say, warn: say, error: say },
    ...options,
  });
  replicas = made;
  return { ...{ world, made }, events: () => world.received.map(([event]) => event) };
}

const other = (seenAt: number): Replica => ({
  ...{ id: "rep_other", advertiseUrl: null, version: "1", startedAt: 50, seenAt },
});

test("keeps the last number of replicas while the database does not answer", async () => {
  const { made, world, events } = make();
  expect(made.count).toBe(1);
  world.others = [other(100), { ...other(100), id: "rep_third" }];
  await made.start();
  expect(made.count).toBe(3);
  world.isAway = true;
  await made.refresh();
  await made.refresh();
  expect(made.count).toBe(3);
  expect(events()).toEqual(["replica_beat_failed"]);
  world.isAway = false;
  world.others = [];
  await made.refresh();
  expect(made.count).toBe(1);
  expect(events()).toEqual(["replica_beat_failed", "replica_beats_again"]);
});

test("reports the database as read-only after two failed heartbeats in a row, not after one", async () => {
  const { made, world } = make();
  await made.start();
  const seen: boolean[] = [];
  for (const isAway of [true, false, true, true, false]) {
    world.isAway = isAway;
    await made.refresh();
    seen.push(made.canWrite);
  }
  expect(seen).toEqual([true, true, true, false, true]);
});

test("retries a failed heartbeat within a moment, but not after the replica has left", async () => {
  const { made, world } = make();
  await made.start();
  world.isAway = true;
  await made.refresh();
  world.isAway = false;
  world.others = [other(100)];
  await until(() => made.count === 2, "it beats again");
  world.isAway = true;
  await made.refresh();
  await made.close();
  const before = world.beats;
  await Bun.sleep(1_200);
  expect(world.beats).toBe(before);
});

test("warns once about several replicas without shared limits, but not about a restarted one", async () => {
  const { made, world, events } = make();
  // The other row is that of the process before, which was last seen when this one started.
  world.others = [other(100)];
  await made.start();
  expect([made.isUncoordinated, events()]).toEqual([false, []]);
  world.others = [other(105)];
  await made.refresh();
  await made.refresh();
  expect([made.isUncoordinated, events()]).toEqual([true, ["limits_are_not_shared"]]);
  expect(String(world.received[0]?.[1]?.["detail"])).toContain("HEADRACE_REDIS_URL");
  world.others = [];
  await made.refresh();
  expect(made.isUncoordinated).toBe(false);
});

test("accepts any number of replicas with shared limits", async () => {
  const { made, world, events } = make({ sharesLimits: true });
  world.others = [other(105)];
  await made.start();
  expect([made.isUncoordinated, events()]).toEqual([false, []]);
});

test("removes a replica at shutdown, without waiting for an unavailable database", async () => {
  const first = make();
  await first.made.start();
  await first.made.close();
  expect(first.world.removed).toEqual([first.made.id]);
  const second = make();
  await second.made.start();
  second.world.isAway = true;
  await second.made.close();
  expect(second.events()).toEqual(["replica_not_removed"]);
  second.world.isAway = false;
});
