import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../../tests/support/headrace.ts";
import { ModelCommands, reached } from "../../../tests/support/model-commands.ts";
import { markedProcesses, markOf } from "../../processes/orphans.ts";
import { Output } from "../../processes/output.ts";

describe("a command that sleeps", () => {
  const asleepGpu = { 0: 1 };
  const onGpu = (gigabytes: number) => ({ memory: { ram: 1, gpu: { 0: gigabytes } } });
  const totals = { ram: 10, gpu0: 10 };

  test("takes requests again once it wakes up, also where it had yielded to another before", async () => {
    await using world = new ModelCommands();
    const [a, b] = world.openTwo(
      world.command("a", [], { ...onGpu(8), asleepGpu }),
      world.command("b", [], onGpu(8)),
      totals,
    );
    await world.load(a);
    a.onDemand.demand(1, 0);
    b.onDemand.demand(0, 1);
    await until(() => !a.onDemand.open, "a yields");
    a.onDemand.demand(0, 0);
    await reached(b, "loaded");
    expect(a.figures().state).toBe("asleep");
    b.onDemand.demand(0, 0);
    a.onDemand.demand(0, 1);
    await reached(a, "loaded");
    expect(a.onDemand.open).toBe(true);
  });

  test("is not woken, and stops nobody, for a request that has left", async () => {
    await using world = new ModelCommands();
    const [a, b] = world.openTwo(
      world.command("a", [], { ...onGpu(8), asleepGpu }),
      world.command("b", [], onGpu(8)),
      totals,
    );
    await world.load(a);
    await world.load(b);
    b.onDemand.demand(1, 0);
    a.onDemand.demand(0, 1);
    await until(() => !b.onDemand.open, "b yields");
    expect(a.figures().state).toBe("waiting");
    a.onDemand.demand(0, 0);
    await until(() => b.onDemand.open, "b takes requests again");
    expect(a.figures().state).toBe("asleep");
    b.onDemand.demand(0, 0);
    a.onDemand.demand(0, 1);
    await reached(a, "loaded");
    expect(world.diary()).toEqual(["started a", "slept a", "started b", "ended b", "woke a"]);
  });

  test("is not asked to leave while it falls asleep by itself", async () => {
    await using world = new ModelCommands();
    const [a, b] = world.openTwo(
      world.command("a", ["--sleep-ms", "300"], { ...onGpu(8), asleepGpu, keepSeconds: 0.2 }),
      world.command("b", [], onGpu(8)),
      totals,
    );
    await world.load(a);
    await reached(a, "stopping");
    b.onDemand.demand(0, 1);
    await reached(b, "loaded");
    expect(a.figures()).toMatchObject({ state: "asleep", evictions: 0, failures: 0 });
    expect(world.diary()).toEqual(["started a", "slept a", "started b"]);
  });

  test("is stopped by an operator, also while it falls asleep", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(
      world.command("a", ["--sleep-ms", "300"], { ...onGpu(8), asleepGpu, keepSeconds: 0.2 }),
      totals,
    );
    await world.load(a);
    await reached(a, "stopping");
    a.onDemand.unload();
    await reached(a, "off");
  });
});

describe("an operator", () => {
  test("ends a start that takes too long", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a", ["--load-ms", "60000"]));
    a.onDemand.load();
    await reached(a, "loading");
    a.onDemand.unload();
    await reached(a, "off");
    expect(a.figures()).toMatchObject({ starts: 1, failures: 0 });
  });

  test("who takes a stop back lets those go on who wait meanwhile", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a"));
    await world.load(a);
    a.onDemand.demand(1, 0);
    a.onDemand.unload();
    a.onDemand.demand(1, 1);
    expect(a.onDemand.open).toBe(false);
    const before = world.opens.length;
    a.onDemand.load();
    expect([a.onDemand.open, world.opens.length]).toEqual([true, before + 1]);
  });
});

describe("a command whose memory is learned", () => {
  test("is served where what was learned cannot be written, as on a full disk", async () => {
    await using world = new ModelCommands();
    mkdirSync(join(world.directory, "model-memory.json.new"));
    const a = world.openOne(world.command("a", [], { memory: undefined }), { ram: 8e9 });
    await world.load(a);
    expect(a.figures()).toMatchObject({ starts: 1, failures: 0 });
    expect(a.figures().memory["ram"]).toBeLessThan(1e9);
    expect(world.complaints).toEqual([expect.stringContaining("model_memory_not_kept")]);
  });
});

describe("a command whose memory grew", () => {
  test("beyond all that there is still gets all of it, as it did before", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a", ["--fill", `${50 * 2 ** 20}`], { memory: undefined }), { ram: 40e6 });
    await world.load(a);
    a.onDemand.unload();
    await reached(a, "off");
    await world.load(a);
    expect(a.figures()).toMatchObject({ starts: 2, failures: 0, memory: { ram: 40e6 } });
  });
});

describe("what a command wrote", () => {
  test("shows no part of a secret that stands where a long line is cut", () => {
    const output = new Output(["a-secret-of-mine"], () => 1);
    output.add(`${"x".repeat(1_990)}a-secret-of-mine`);
    expect(output.last).toBe(`${"x".repeat(1_990)}[redacted]`);
  });
});

test("a command whose directory is not there says so, and not that its program is not", async () => {
  await using world = new ModelCommands();
  const a = world.openOne(world.command("a", [], { directory: "/nowhere/at/all" }));
  a.onDemand.demand(0, 1);
  await reached(a, "failed");
  expect(a.figures().failure).toContain("could not be started: its directory /nowhere/at/all is not there");
});

describe("a command that ends", () => {
  test("by a signal is told to have, as by a system without memory", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a"));
    await world.load(a);
    await fetch(`${a.onDemand.serving?.url}/die?by=SIGKILL`).catch(() => {});
    await until(() => a.figures().failures === 1, "its end is seen");
    expect(a.figures().failure).toBe("the process was ended by SIGKILL, as a system does that has no memory left");
  });

  test("as it goes into the background is told to stay, and leaves nothing there", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a", [], { command: ["sh", "-c", "sleep 60 & exit 0"] }));
    a.onDemand.demand(0, 1);
    await until(() => a.figures().failures === 1, "its end is seen");
    expect(a.figures().failure).toBe(
      "the process ended with code 0 (it has to stay in the foreground) before it was ready",
    );
    a.onDemand.demand(0, 0);
    expect(markedProcesses(markOf(world.directory, ""))).toEqual([]);
  });

  test("is not given up at its next failure for those before it served", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a", ["--fail-times", "2"]));
    await world.load(a);
    expect(a.figures()).toMatchObject({ starts: 3, failures: 2 });
    a.onDemand.unload();
    await reached(a, "off");
    a.onDemand.demand(0, 1);
    await reached(a, "loaded");
    await fetch(`${a.onDemand.serving?.url}/die`).catch(() => {});
    await until(() => a.figures().failures === 3, "its end is seen");
    expect(a.figures().state).toBe("restarting");
  });
});

test("a command that waits for the one of its group is told so in words", async () => {
  await using world = new ModelCommands();
  const [a, b] = world.openTwo(
    world.command("a", [], { group: "large", pinned: true }),
    world.command("b", [], { group: "large" }),
    { ram: 10, "group:large": 1 },
  );
  a.onDemand.start();
  await reached(a, "loaded");
  b.onDemand.demand(0, 1);
  await reached(b, "failed");
  expect(b.figures().failure).toBe("A pinned model has the one place of the group large.");
});

test("a command that is kept for a year is looked after once a day at most", async () => {
  await using world = new ModelCommands();
  const a = world.openOne(world.command("a", [], { keepSeconds: 31_536_000 }));
  await world.load(a);
  const warnings: string[] = [];
  const warn = ({ name }: Error) => void warnings.push(name);
  process.on("warning", warn);
  a.onDemand.demand(1, 0);
  a.onDemand.demand(0, 0);
  await Bun.sleep(50);
  process.off("warning", warn);
  expect(warnings).toEqual([]);
});
