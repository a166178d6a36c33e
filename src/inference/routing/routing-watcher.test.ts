// Tests that changes of upstreams by other processes are seen at the next poll or notification, and not lost if a poll
// fails.
import { afterEach, expect, test } from "bun:test";
import { until } from "../../../tests/support/headrace.ts";
import type { ChangeTopic } from "../../domain/change-feed.ts";
import { RoutingWatcher } from "./routing-watcher.ts";

let watcher: RoutingWatcher | undefined;
afterEach(() => watcher?.close());

function watch(pollMs: number) {
  const world = {
    revision: 1,
    fails: false,
    reloads: [] as number[],
    received: [] as string[],
    tell: (() => {}) as () => void,
    onLook: async () => {},
  };
  const say = (event: string) => void world.received.push(event);
  watcher = new RoutingWatcher({
    store: {
      async routingRevision() {
        const { revision } = world;
        await world.onLook();
        return revision;
      },
    },
    feed: {
      onChange(topic: ChangeTopic, listener: () => void) {
        expect(topic).toBe("routing");
        world.tell = listener;
      },
    },
    async reload() {
      if (world.fails) throw new Error("the database is away");
      world.reloads.push(world.revision);
    },
    log: { info: say, warn: say, error: say },
    pollMs,
  });
  watcher.start();
  return world;
}

test("reads everything at the start, and again only after a change", async () => {
  const world = watch(5);
  await until(() => world.reloads.length === 1, "it is read");
  let looks = 0;
  world.onLook = async () => {
    looks++;
  };
  await until(() => looks > 3, "it looks");
  expect(world.reloads).toEqual([1]);
  world.revision = 2;
  await until(() => world.reloads.length === 2, "it is read again");
});

test("polls at once when told of a change, and once more after a poll under way", async () => {
  const world = watch(3_600_000);
  await watcher?.poll();
  expect(world.reloads).toEqual([1]);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  world.onLook = () => held;
  const looking = watcher?.poll();
  // The running poll has already read the revision.
  await Promise.resolve();
  world.revision = 2;
  world.tell();
  release();
  await looking;
  expect(world.reloads).toEqual([1, 2]);
});

test("retries a change that cannot be applied, and reports it once", async () => {
  const world = watch(5);
  await until(() => world.reloads.length === 1, "it is read");
  world.fails = true;
  world.revision = 2;
  await until(() => world.received.length > 0, "it is told");
  await Bun.sleep(30);
  expect(world.received).toEqual(["routing_changes_unseen"]);
  world.fails = false;
  await until(() => world.reloads.length === 2, "it is taken over");
  await until(() => world.received.length === 2, "and told");
  expect(world.received).toEqual(["routing_changes_unseen", "routing_changes_seen_again"]);
});
