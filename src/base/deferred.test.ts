import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Deferred, whenSettled } from "./deferred.ts";

const never = () => expect.unreachable();

describe("Deferred", () => {
  test("calls listeners in order, in the call that settles it", () => {
    const later = new Deferred<number>();
    const received: string[] = [];
    for (const name of ["a", "b", "c"]) later.whenSettled((value) => received.push(name + value), never);
    later.resolve(1);
    expect(received).toEqual(["a1", "b1", "c1"]);
  });

  test("calls a listener of a settled Deferred at once, with the first outcome", () => {
    const later = new Deferred<number>();
    later.reject(new Error("first"));
    later.resolve(2);
    const received: unknown[] = [];
    later.whenSettled(never, (error) => received.push(error));
    expect(received).toEqual([new Error("first")]);
  });

  test("calls each error listener of a rejected Deferred", () => {
    const later = new Deferred<number>();
    const received: unknown[] = [];
    for (const name of ["a", "b"]) later.whenSettled(never, (error) => received.push([name, error]));
    later.reject("no");
    expect(received).toEqual([
      ["a", "no"],
      ["b", "no"],
    ]);
  });

  test("can be awaited before and after it settles", async () => {
    const before = new Deferred<number>();
    before.resolve(1);
    expect(await before).toBe(1);
    const after = new Deferred<number>();
    queueMicrotask(() => after.reject(new Error("late")));
    expect(async () => await after).toThrow("late");
  });

  test("passes each listener its owner", () => {
    const later = new Deferred<number>();
    const received: string[] = [];
    const listener = (value: number, owner: string) => void received.push(owner + value);
    later.whenSettled(listener, never, "a");
    later.whenSettled(listener, never, "b");
    later.resolve(1);
    later.whenSettled(listener, never, "c");
    expect(received).toEqual(["a1", "b1", "c1"]);
    const failed = new Deferred<number>();
    const errors: unknown[] = [];
    for (const owner of ["a", "b"]) failed.whenSettled(never, (error, whose) => errors.push([error, whose]), owner);
    failed.reject("no");
    expect(errors).toEqual([
      ["no", "a"],
      ["no", "b"],
    ]);
  });

  test("calls the remaining listeners and settles if one throws", () => {
    const program = `
      import { ${Deferred.name} } from ${JSON.stringify(join(import.meta.dir, "deferred.ts"))};
      process.on("uncaughtException", (error) => console.log("uncaught", error.message));
      for (const way of ["resolve", "reject"]) {
        const later = new ${Deferred.name}();
        const fail = () => { throw new Error(way); };
        for (let i = 0; i < 2; i++) later.whenSettled(fail, fail);
        later.whenSettled((value) => console.log("told", value), (error) => console.log("told", error));
        later[way](1);
        console.log("settled");
      }`;
    const { stdout } = Bun.spawnSync([process.execPath, "-e", program]);
    const once = ["told 1", "settled"];
    const uncaught = ["resolve", "resolve", "reject", "reject"].map((way) => `uncaught ${way}`);
    expect(String(stdout).trim().split("\n")).toEqual([...once, ...once, ...uncaught]);
  });

  test("calls a listener that a listener adds", () => {
    const later = new Deferred<number>();
    const received: number[] = [];
    later.whenSettled((value) => later.whenSettled((again) => received.push(value, again), never), never);
    later.resolve(3);
    expect(received).toEqual([3, 3]);
  });
});

test("listens to a promise like to a Deferred", async () => {
  const received: unknown[] = [];
  whenSettled(Promise.resolve(1), (value) => received.push(value), never);
  whenSettled(Promise.reject(new Error("no")), never, (error) => received.push(error));
  await Bun.sleep(1);
  whenSettled(Promise.resolve(2), (value, owner) => received.push(owner + value), never, "own");
  await Bun.sleep(1);
  expect(received).toEqual([1, new Error("no"), "own2"]);
});
