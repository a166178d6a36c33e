import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { until } from "../../../tests/support/headrace.ts";
import { ModelCommands, reached } from "../../../tests/support/model-commands.ts";
import { markedProcesses, markOf } from "../../processes/orphans.ts";

let world: ModelCommands;

beforeEach(() => {
  world = new ModelCommands();
});

afterEach(() => world[Symbol.asyncDispose]());

describe("a model command", () => {
  test("starts a command for the first waiting request, and serves once it is ready", async () => {
    const engine = world.openOne(world.command("a", ["--load-ms", "200"]));
    expect([engine.figures().state, engine.onDemand.open]).toEqual(["off", false]);
    engine.onDemand.demand(0, 1);
    await reached(engine, "loading");
    expect(engine.onDemand.open).toBe(false);
    await reached(engine, "loaded");
    expect(engine.onDemand.open).toBe(true);
    expect(await engine.models()).toMatchObject([{ id: "a", context: 4096 }]);
    expect(engine.figures()).toMatchObject({ starts: 1, evictions: 0, failures: 0 });
    expect(engine.figures().loadSeconds).toBeGreaterThan(0.2);
  });

  test("detects readiness by the model list if there is no /health", async () => {
    await world.load(world.openOne(world.command("a", ["--bare"])));
  });

  test("passes only basic variables to a command, and redacts its secrets in every line", async () => {
    const engine = world.openOne(world.command("a", [], { env: { HF_TOKEN: "a-token-of-mine" } }));
    await world.load(engine);
    const text = engine.outputAfter(0).map((line) => line.text);
    expect(text).toContain("loading a, with 0 bytes and HF_TOKEN=[redacted]");
    expect(text).toContain("variables: HEADRACE_MODEL_PROCESS HF_TOKEN PATH");
  });

  test("stops a command with all its processes after the configured idle time", async () => {
    const engine = world.openOne(world.command("a", ["--brood"], { keepSeconds: 0.3 }));
    await world.load(engine);
    expect(markedProcesses(markOf(world.directory, ""))).toHaveLength(2);
    await reached(engine, "off");
    expect(markedProcesses(markOf(world.directory, ""))).toEqual([]);
    expect(world.diary()).toEqual(["started a", "ended a"]);
  });

  test("kills a command that does not end when asked", async () => {
    const engine = world.openOne(world.command("a", ["--stubborn"]));
    await world.load(engine);
    engine.onDemand.unload();
    await reached(engine, "off");
    expect(markedProcesses(markOf(world.directory, ""))).toEqual([]);
  });

  test("loads another model only after the evicted one is gone, and restarts that one on demand", async () => {
    const [a, b] = world.openTwo(
      world.command("a", ["--stubborn"], { memory: { ram: 8, gpu: {} } }),
      world.command("b", []),
    );
    await world.load(a);
    b.onDemand.demand(0, 1);
    await reached(a, "stopping");
    a.onDemand.demand(0, 1);
    expect(b.figures().state).toBe("waiting");
    await reached(b, "loaded");
    expect(a.figures()).toMatchObject({ state: "waiting", evictions: 1 });
    b.onDemand.demand(0, 0);
    await reached(a, "loaded");
    expect(world.diary()).toEqual(["started a", "started b", "ended b", "started a"]);
  });

  test("does not stop a busy command for another, but admits nothing new meanwhile", async () => {
    const [a, b] = world.openTwo(world.command("a"), world.command("b", [], { memory: { ram: 8, gpu: {} } }));
    await world.load(a);
    a.onDemand.demand(1, 0);
    b.onDemand.demand(0, 1);
    await until(() => !a.onDemand.open, "a yields");
    expect([a.figures().state, b.figures().state]).toEqual(["loaded", "waiting"]);
    b.onDemand.demand(0, 0);
    await until(() => a.onDemand.open, "a takes requests again, as nobody waits for b any more");
    b.onDemand.demand(0, 1);
    await until(() => !a.onDemand.open, "a yields again");
    a.onDemand.demand(0, 0);
    await reached(b, "loaded");
  });

  test("tries a failing command three times, refuses its requests with the log's reason, and retries on demand", async () => {
    const engine = world.openOne(world.command("a", ["--fail", "7"]));
    engine.onDemand.demand(0, 1);
    await reached(engine, "failed");
    const starts = () => world.diary().filter((line) => line === "started a").length;
    expect(starts()).toBe(3);
    expect(engine.onDemand.open).toBe(true);
    const { message, detail, retryAfterSeconds } = engine.onDemand.refusal();
    expect(message).toBe("The server of this model could not be started. Retry in 15 s.");
    expect(detail).toBe("a: the process ended with code 7 before it was ready; its last line: no such layer: blk.0");
    expect(retryAfterSeconds).toBe(15);
    engine.onDemand.load();
    await until(() => starts() === 4, "it is tried again");
  });

  test("refuses a command at once that can never fit", async () => {
    const engine = world.openOne(world.command("a", [], { memory: { ram: 11, gpu: {} } }));
    engine.onDemand.demand(0, 1);
    await reached(engine, "failed");
    expect(engine.figures().starts).toBe(0);
    expect(engine.onDemand.refusal().message).toContain("needs more memory than there is for models");
    expect(engine.onDemand.refusal().detail).toBe("a: It needs 0.00 GB of RAM, and the budget has 0.00 GB.");
  });

  test("restarts a command that died, for the requests that wait", async () => {
    const engine = world.openOne(world.command("a"));
    await world.load(engine);
    const url = engine.onDemand.serving?.url;
    await fetch(`${url}/die`).catch(() => {});
    await until(() => !engine.onDemand.open, "its end is seen");
    engine.onDemand.demand(0, 1);
    await reached(engine, "loaded");
    expect(engine.figures()).toMatchObject({ starts: 2, failures: 1 });
  });

  test("leaves no process of a command when its guard is killed", async () => {
    const engine = world.openOne(world.command("a", ["--brood"]));
    await world.load(engine);
    const [pid = 0] = markedProcesses(markOf(world.directory, ""));
    const guard = Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    process.kill(guard, "SIGKILL");
    await until(() => engine.figures().failures === 1, "its end is seen");
    expect(markedProcesses(markOf(world.directory, ""))).toEqual([]);
  });

  test("puts a command to sleep if that makes room, and wakes it for the next request", async () => {
    const asleepGpu = { 0: 1 };
    const [a, b] = world.openTwo(
      world.command("a", [], { memory: { ram: 4, gpu: { 0: 8 } }, asleepGpu }),
      world.command("b", [], { memory: { ram: 4, gpu: { 0: 8 } } }),
      { ram: 10, gpu0: 10 },
    );
    await world.load(a);
    b.onDemand.demand(0, 1);
    await reached(b, "loaded");
    expect(a.figures()).toMatchObject({ state: "asleep", memory: { ram: 4, gpu0: 1 } });
    b.onDemand.demand(0, 0);
    a.onDemand.demand(0, 1);
    await reached(a, "loaded");
    expect(a.figures()).toMatchObject({ starts: 1, memory: { ram: 4, gpu0: 8 } });
    expect(world.diary()).toEqual(["started a", "slept a", "started b", "ended b", "woke a"]);
  });

  test("measures and remembers the memory of a command if none is configured", async () => {
    const totals = { ram: 8e9 };
    const settings = world.command("a", ["--fill", `${100 * 2 ** 20}`], { memory: undefined });
    const engine = world.openOne(settings, totals);
    expect(engine.figures().memory).toEqual({ ram: 4e9 });
    await world.load(engine);
    const learned = engine.figures().memory["ram"] ?? 0;
    expect(learned).toBeGreaterThan(100 * 2 ** 20);
    expect(learned).toBeLessThan(400 * 2 ** 20);
    expect(world.openOne(settings, totals).figures().memory).toEqual({ ram: learned });
  });
});
