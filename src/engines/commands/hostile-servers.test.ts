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

  test("serves requests again after it wakes, also after it yielded to another model", async () => {
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

  test("neither wakes a sleeping command nor stops another one for a request that has left", async () => {
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

  test("does not evict a command that is just falling asleep", async () => {
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

  test("stops a command on the operator's demand while it falls asleep", async () => {
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

describe("an operator's stop", () => {
  test("ends a start that takes too long on the operator's demand", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a", ["--load-ms", "60000"]));
    a.onDemand.load();
    await reached(a, "loading");
    a.onDemand.unload();
    await reached(a, "off");
    expect(a.figures()).toMatchObject({ starts: 1, failures: 0 });
  });

  test("serves waiting requests when the operator takes a stop back", async () => {
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

describe("a command whose memory is measured", () => {
  test("serves a command whose measured memory cannot be stored, as on a full disk", async () => {
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
  test("gives a command all memory if it grew beyond what there is", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a", ["--fill", `${50 * 2 ** 20}`], { memory: undefined }), { ram: 40e6 });
    await world.load(a);
    a.onDemand.unload();
    await reached(a, "off");
    await world.load(a);
    expect(a.figures()).toMatchObject({ starts: 2, failures: 0, memory: { ram: 40e6 } });
  });
});

describe("the output of a command", () => {
  test("redacts a secret in a command's output that spans the cut of a long line", () => {
    const output = new Output(["a-secret-of-mine"], () => 1);
    output.add(`${"x".repeat(1_990)}a-secret-of-mine`);
    expect(output.last).toBe(`${"x".repeat(1_990)}[redacted]`);
  });
});

test("reports a missing directory of a command rather than a missing program", async () => {
  await using world = new ModelCommands();
  const a = world.openOne(world.command("a", [], { directory: "/nowhere/at/all" }));
  a.onDemand.demand(0, 1);
  await reached(a, "failed");
  expect(a.figures().failure).toContain("could not be started: its directory /nowhere/at/all is not there");
});

describe("a command that ends", () => {
  test("reports the signal that ended a command, as for a system without memory", async () => {
    await using world = new ModelCommands();
    const a = world.openOne(world.command("a"));
    await world.load(a);
    await fetch(`${a.onDemand.serving?.url}/die?by=SIGKILL`).catch(() => {});
    await until(() => a.figures().failures === 1, "its end is seen");
    expect(a.figures().failure).toBe("the process was ended by SIGKILL, as a system does that has no memory left");
  });

  test("reports a command that goes into the background, and leaves no process of it", async () => {
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

  test("does not count failures before a successful run when a command fails again", async () => {
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

test("names the pinned model that occupies a command's group", async () => {
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

test("checks a command that is kept for a year without overflowing its timer", async () => {
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
