// What every agent has to stand behind the gateway, whichever formats its model speaks: work, faults, and usage to the token.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { long } from "../long.ts";
import {
  type AgentWorld,
  blue,
  expectBooked,
  type ScriptedWorld,
  startAgentWorld,
  taskOf,
  theEnd,
  type UpstreamKind,
  upstreamKinds,
} from "./agent-world.ts";
import { type EngineWorld, startEngineWorld } from "./engine-world.ts";
import type { Task } from "./scripted-model.ts";

export interface Agent {
  task: Task;
  /** Has it do the work, and returns what it said at last. */
  run(world: AgentWorld): Promise<string>;
  /** It takes seconds to start: the work without faults, which is part of that with them, is for the long form alone. */
  isSlow?: boolean;
}

const kinds = Object.keys(upstreamKinds) as UpstreamKind[];

/** For agents that a test holds in its hands: all faults in one run, each at another turn. */
export function describeAgent({ task, run, isSlow = false }: Agent): void {
  describe.each(kinds)("an agent with a model that speaks %s", (kind) => {
    let world: ScriptedWorld;
    beforeAll(async () => {
      world = await startAgentWorld(kind);
    });
    beforeEach(() => {
      world.reset();
      world.upstream.work(task);
    });
    afterAll(() => world[Symbol.asyncDispose]());

    const doesItsWork = async () => {
      expect(await run(world)).toContain(theEnd);
      expect(world.text()).toBe(blue);
      expect(taskOf(world)).toEqual(["0", "1", "2", "3"]);
      await expectBooked(world);
    };
    if (long || !isSlow) test("edits a file over four turns and books the model's counts", doesItsWork);

    test("continues through a 429, a 503, a cut stream and a too long conversation", async () => {
      world.upstream.failAt(0, "429");
      world.upstream.failAt(1, "503");
      world.upstream.failAt(2, "cut");
      world.upstream.failAt(3, "overflow");
      expect(await run(world)).toContain(theEnd);
      expect(world.text()).toBe(blue);
      expect(taskOf(world)).toEqual(["429", "0", "503", "1", "cut", "2", "overflow", "summary", "3"]);
      await expectBooked(world);
    });
  });

  describe("an agent with the built-in engine", () => {
    let world: EngineWorld;
    beforeAll(async () => {
      world = await startEngineWorld(task);
      world.reset();
    });
    afterAll(() => world[Symbol.asyncDispose]());

    test("edits a file over four turns with the built-in engine and books the conversation's tokens", async () => {
      expect(await run(world)).toContain(theEnd);
      expect(world.text()).toBe(blue);
      expect(world.turns()).toEqual([0, 1, 2, 3]);
      await world.expectBooked();
    });
  });
}
