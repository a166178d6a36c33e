// Tests which engines are asked for their load: those that report it, only while they get requests, and never twice at
// a time.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import type { Engine, EngineLoad } from "../../domain/models/engine.ts";
import { LoadReader } from "./load-reader.ts";

const load: EngineLoad = { running: 1, waiting: 0, cacheUse: null, cacheHits: null };

function world(answer: (call: number) => Promise<EngineLoad | undefined>) {
  const clock = manualClock();
  const silent: Engine = {
    name: "silent",
    redact: (text) => text,
    models: async () => [],
    send: () => Promise.reject(new Error("not used")),
  };
  const engine = { ...silent, name: "e", calls: 0, load: () => answer(++engine.calls) };
  const said: EngineLoad[] = [];
  let usedMs = clock.monotonicMs();
  const router = { said: (_: Engine, one: EngineLoad) => void said.push(one), lastUsedMs: () => usedMs };
  const reader = new LoadReader({ engines: () => [engine, silent], router, clock });
  reader.close();
  return { clock, engine, said, reader, use: () => (usedMs = clock.monotonicMs()) };
}

test("reads an engine's load until ten seconds after its last request", async () => {
  const { clock, engine, said, reader, use } = world(async () => load);
  await reader.read();
  clock.advance(10_000);
  await reader.read();
  clock.advance(1);
  await reader.read();
  expect([engine.calls, said.length]).toEqual([2, 2]);
  use();
  await reader.read();
  expect(engine.calls).toBe(3);
});

test("reads the load of an engine without one only once, and of a failing engine after half a minute", async () => {
  const nothing = world(async () => undefined);
  for (let i = 0; i < 3; i++) {
    await nothing.reader.read();
    nothing.clock.advance(100_000);
    nothing.use();
  }
  expect(nothing.engine.calls).toBe(1);
  const failing = world((call) => (call === 1 ? Promise.reject(new Error("refused")) : Promise.resolve(load)));
  await failing.reader.read();
  await failing.reader.read();
  failing.clock.advance(30_000);
  failing.use();
  await failing.reader.read();
  expect([failing.engine.calls, failing.said.length]).toEqual([2, 1]);
});

test("does not read the load again while a reading is pending", async () => {
  const late = Promise.withResolvers<EngineLoad>();
  const { engine, said, reader } = world(() => late.promise);
  const first = reader.read();
  await reader.read();
  expect(engine.calls).toBe(1);
  late.resolve(load);
  await first;
  expect(said).toHaveLength(1);
});
