// What every agent that is run as a program has to stand behind the gateway: work, each fault in a run of its own, and usage to the token.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { runCommand } from "../../fixtures/command-line.ts";
import { long } from "../long.ts";
import { makeProgramHome, type ProgramHome } from "./agent-program.ts";
import type { Fault } from "./agent-upstream.ts";
import {
  type AgentWorld,
  agentModel,
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

export interface Prepared {
  command: readonly string[];
  env?: Readonly<Record<string, string>>;
}

export interface Program {
  task: Task;
  /** Writes the program's configuration; gives the command that does the work, and its environment. */
  prepare(home: ProgramHome, world: AgentWorld): Prepared | Promise<Prepared>;
  /** What comes of it where the second turn fails so: programs differ in what they do then. */
  faults: Readonly<Record<Fault, Done | Stopped>>;
  /** Tokens by which the conversation grows at the third turn, so that the program makes it short. */
  compacted: Done & { by: number };
  /** false: not over the built-in engine, where what goes over a WebSocket is counted by nobody. */
  overEngine?: false;
  /** It takes seconds to start: only the long form has it work over every kind of model, and through every fault. */
  isSlow?: boolean;
}

/** The work is done all the same. */
export interface Done {
  /** That the model took. */
  steps: readonly string[];
  /** With which the program ends; 0 unless told otherwise. */
  code?: number;
}

/** The program takes this for the end of its work, whoever's model it is, and says so in words that its user can act upon. */
export interface Stopped {
  says: string;
}

/** Connects the program as its user would, with `headrace connect`. */
export async function connect(client: string, { home }: ProgramHome, { server }: AgentWorld): Promise<void> {
  const env = { HOME: home, HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.key };
  const args = ["connect", client, "--model", agentModel, "--write", "--yes"];
  const { code, stderr } = await runCommand(args, { env, configFolder: join(home, "headrace") });
  expect({ code, stderr }).toMatchObject({ code: 0 });
}

const allKinds = Object.keys(upstreamKinds) as UpstreamKind[];
const deadlineMs = 60_000;

export function describeProgram(program: Program): void {
  const { task, prepare, faults, compacted, isSlow = false } = program;
  const kinds = isSlow && !long ? allKinds.slice(0, 1) : allKinds;
  describe.each(kinds)("an agent program with a model that speaks %s", (kind) => {
    let world: ScriptedWorld;
    let home: ProgramHome;
    beforeAll(async () => {
      world = await startAgentWorld(kind);
    });
    beforeEach(() => {
      world.reset();
      world.upstream.work(task);
      home = makeProgramHome();
    });
    afterEach(() => home[Symbol.asyncDispose]());
    afterAll(() => world[Symbol.asyncDispose]());

    async function expectDone({ steps, code: expected = 0 }: Done): Promise<void> {
      const { command, env } = await prepare(home, world);
      const { code, stdout, stderr } = await home.run(command, world.directory, env);
      expect({ said: stdout, stderr, code }).toMatchObject({ said: expect.stringContaining(theEnd), code: expected });
      expect(world.text()).toBe(blue);
      expect(taskOf(world)).toEqual([...steps]);
      await expectBooked(world);
    }

    test(
      "edits a file over four turns by the program and books the model's counts",
      () => expectDone({ steps: ["0", "1", "2", "3"] }),
      deadlineMs,
    );

    async function expectStopped({ says }: Stopped): Promise<void> {
      const { command, env } = await prepare(home, world);
      const { code, stdout, stderr } = await home.run(command, world.directory, env);
      expect(stdout + stderr).toContain(says);
      expect(code).not.toBe(0);
      await expectBooked(world);
    }

    const tried = isSlow && !long ? (["cut"] as const) : (Object.keys(faults) as Fault[]);
    test.each(tried)(
      "retries a model that fails once by %s, or reports it in the expected words",
      async (fault) => {
        world.upstream.failAt(1, fault);
        const expected = faults[fault];
        await ("says" in expected ? expectStopped(expected) : expectDone(expected));
      },
      deadlineMs,
    );

    test(
      "compacts a too long conversation and continues",
      async () => {
        world.upstream.weigh({ fromStep: 2, tokens: compacted.by });
        await expectDone(compacted);
      },
      deadlineMs,
    );
  });
  if (program.overEngine !== false) describeOverEngine(program);
}

/** It is not to fail on demand, so there is only the work. */
function describeOverEngine({ task, prepare }: Program): void {
  describe("an agent program with the built-in engine", () => {
    let world: EngineWorld;
    let home: ProgramHome;
    beforeAll(async () => {
      world = await startEngineWorld(task);
      world.reset();
      home = makeProgramHome();
    });
    afterAll(async () => {
      await home[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    });

    test(
      "edits a file over four turns by the program with the built-in engine and books the conversation's tokens",
      async () => {
        const { command, env } = await prepare(home, world);
        const { code, stdout, stderr } = await home.run(command, world.directory, env);
        expect({ said: stdout, stderr, code }).toMatchObject({ said: expect.stringContaining(theEnd), code: 0 });
        expect(world.text()).toBe(blue);
        expect(world.turns()).toEqual([0, 1, 2, 3]);
        await world.expectBooked();
      },
      deadlineMs,
    );
  });
}
