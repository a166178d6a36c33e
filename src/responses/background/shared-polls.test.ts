// Shared polls: the store is asked once for all followers at the same event.
import { expect, test } from "bun:test";
import { UnsteadyRunStore } from "../../../tests/support/unsteady-run-store.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { systemClock } from "../../base/clock.ts";
import { Stopping } from "../../inference/stopping.ts";
import { EventSubscriber } from "./event-subscriber.ts";
import { SharedPolls } from "./shared-polls.ts";

const steady = { draw: () => 0.5, maxMs: 4, failing: 0 };

test("polls fewer than 100 times for a thousand followers of one response, and sends each all events", async () => {
  const store = new UnsteadyRunStore(steady);
  const looks = new SharedPolls(store, systemClock);
  let asked = 0;
  const state = store.state.bind(store);
  store.state = () => {
    asked++;
    return state();
  };
  const got = Array.from({ length: 1_000 }, () => "");
  const following = got.map(async (_, nth) => {
    await Bun.sleep(Math.random() * 500);
    const client: ClientStream = {
      onDrain: undefined,
      write(bytes) {
        got[nth] += bytes;
        return true;
      },
      writeAround: () => true,
      end() {},
      abort() {},
    };
    const subscriber = new EventSubscriber({
      ...{ id: "resp_1", after: -1, client, clientGone: new Cancellation(), background: store, polls: looks },
      ...{ running: () => undefined, stopping: new Stopping(), heartbeatMs: 60_000 },
    });
    await subscriber.run();
  });
  const seconds = 3;
  for (let nth = 0; nth < seconds; nth++) {
    await store.progress("", { status: "in_progress", events: { first: nth, events: [`{"type":"a","n":${nth}}`] } });
    await Bun.sleep(1_000);
  }
  await store.end("", { status: "completed", response: {}, events: { first: seconds, events: ['{"type":"z"}'] } });
  await Promise.all(following);
  expect(new Set(got).size).toBe(1);
  expect(got[0]?.match(/data: /g)).toHaveLength(seconds + 1);
  // Each follower alone would poll twice a second.
  expect(asked).toBeLessThan(100);
});

test("polls again after a failed poll", async () => {
  const store = new UnsteadyRunStore(steady);
  const looks = new SharedPolls(store, systemClock);
  const state = store.state.bind(store);
  store.state = () => Promise.reject(new Error("It is away."));
  expect(await looks.poll("resp_1", -1).catch(() => "failed")).toBe("failed");
  store.state = state;
  expect(await looks.poll("resp_1", -1)).toEqual({ state: { status: "queued", isCancelled: false }, batches: [] });
});
