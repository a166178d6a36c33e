// Bounds and fairness of server slots, and the removal of idle servers.
import { expect, test } from "bun:test";
import { seeded } from "../../../tests/support/seeded.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { ServerSlots } from "./server-slots.ts";

const server = (maxConcurrency: number, timeoutMs = 60_000, name = "s") => ({ name, maxConcurrency, timeoutMs });

test("keeps the last quarter of a server's slots free for parties without a running call", async () => {
  const places = new ServerSlots();
  const of = server(8);
  const cancellation = new Cancellation();
  const greedy = Array.from({ length: 20 }, () => places.take({ server: of, party: "greedy", cancellation }));
  const order: string[] = [];
  const held = await Promise.all(greedy.slice(0, 6));
  const waiting = greedy.slice(6).map((one, i) => one.then(() => order.push(`greedy ${i}`)));
  // Two slots stay free although fourteen calls wait.
  const one = await places.take({ server: of, party: "one" });
  await places.take({ server: of, party: "two" });
  void places.take({ server: of, party: "three" }).then(() => order.push("three"));
  one();
  await Bun.sleep(0);
  expect(order).toEqual(["three"]);
  for (const release of held.slice(0, 4)) release();
  await Bun.sleep(0);
  // With two other calls six run again, and two slots stay free.
  expect(order).toEqual(["three", "greedy 0", "greedy 1"]);
  cancellation.cancel();
  await Promise.allSettled(waiting);
});

test("never exceeds a server's slots, and keeps nothing after all calls have ended, in any order of events", async () => {
  const random = seeded(31);
  const places = new ServerSlots();
  let running = 0;
  let most = 0;
  const ends = await Promise.all(
    Array.from({ length: 400 }, async (_, i) => {
      await Bun.sleep(random() * 40);
      const cancellation = new Cancellation();
      const leaves = random() < 0.2;
      if (leaves) setTimeout(() => cancellation.cancel(new Error("left")), random() * 20);
      try {
        const wanted = { server: server(5, 15), party: `p${i % 7}`, cancellation };
        const release = await places.take(wanted);
        most = Math.max(most, ++running);
        await Bun.sleep(random() * 5);
        running--;
        release();
        // A second release has no effect.
        release();
        return "done";
      } catch (error) {
        return (error as { code?: string }).code ?? String(error);
      }
    }),
  );
  expect(most).toBeLessThanOrEqual(5);
  expect(new Set(ends)).toEqual(new Set(["done", "service_unavailable", "Error: left"]));
  expect(places.tracked).toBe(0);
});

test("bounds the waiting calls of a server, in total and per party", async () => {
  const places = new ServerSlots();
  const of = server(1);
  const release = await places.take({ server: of, party: "first" });
  const outcomes: string[] = [];
  const waiting: Promise<unknown>[] = [];
  const ask = (party: string) => {
    const taken = places.take({ server: of, party }).then((free) => {
      outcomes.push("in");
      free();
    });
    waiting.push(taken.catch(({ refusal }: { refusal?: string }) => outcomes.push(refusal ?? "")));
  };
  for (let i = 0; i < 70; i++) ask("greedy");
  for (let i = 0; i < 300; i++) ask(`other ${i}`);
  await Bun.sleep(0);
  expect(outcomes).toEqual(Array(6 + 300 - (256 - 64)).fill("capacity"));
  release();
  await Promise.all(waiting);
  expect(outcomes.filter((one) => one === "in")).toHaveLength(256);
  expect(places.tracked).toBe(0);
});

test("lets waiting calls in when an operator raises a server's bound", async () => {
  const places = new ServerSlots();
  const release = await places.take({ server: server(1), party: "a" });
  const waiting = [places.take({ server: server(1), party: "b" }), places.take({ server: server(3), party: "c" })];
  release();
  for (const free of await Promise.all(waiting)) free();
  expect(places.tracked).toBe(0);
});
