// A gateway whose model is a script that the built-in engine runs; what is asked of it is counted from the client's words.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bookedUsage } from "../booked-usage.ts";
import { startHeadrace } from "../headrace.ts";
import { afterCall, type ScriptModel, saidCall, scriptModel } from "../llama/script-model.ts";
import { type AgentWorld, agentModel, expectCounted, makeAgentFolder } from "./agent-world.ts";
import { promptTokens, type Shown, shownBy, spaced } from "./prompt-tokens.ts";
import type { Task } from "./scripted-model.ts";
import { startTap } from "./tap.ts";

export interface EngineWorld extends AgentWorld {
  /** How many results of tools each request of the work had, in the order of the answers. */
  turns(): number[];
  /** The ledger has what was answered and nothing else, with the tokens that are counted here. */
  expectBooked(): Promise<void>;
}

/** In tokens, which are bytes to this model: all that agents say at first, and some turns more. */
const context = 65_536;

export async function startEngineWorld(task: Task): Promise<EngineWorld> {
  const model = modelOf(task);
  const models = mkdtempSync(join(tmpdir(), "headrace-script-"));
  const path = join(models, "script.gguf");
  writeFileSync(path, model.file);
  const server = await startHeadrace({
    flags: { model: [path], context, parallel: 2 },
    yaml: `models:
  - id: ${agentModel}
    aliases: ["claude-*"]
    deployments: [{ upstream: built-in, model: script }]
`,
  });
  const tap = await startTap(server.url);
  const folder = makeAgentFolder();
  const answered = () => tap.tapped.map(({ requestId, api, body }) => ({ requestId, shown: shownBy(api, body) }));
  return {
    ...folder,
    // All that clients see of it is the tap.
    server: { ...server, url: tap.url, baseUrl: `${tap.url}/v1` },
    compacts: false,
    turns() {
      const work = answered().filter(({ shown }) => isWork(shown, task));
      return work.map(({ shown }) => resultsIn(shown));
    },
    async expectBooked() {
      const counted = answered().map(({ requestId, shown }) => ({
        requestId,
        count: { prompt: promptTokens(shown, task.steps), completion: completionTokens(shown, task, model) },
      }));
      await expectCounted(server, counted);
      const booked = bookedUsage(server.dataDir).map(({ request_id }) => request_id);
      expect(booked.sort()).toEqual(counted.map(({ requestId }) => requestId).sort());
    },
    async [Symbol.asyncDispose]() {
      await tap[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      folder.remove();
      rmSync(models, { recursive: true, force: true });
    },
  };
}

function modelOf({ steps, end }: Task): ScriptModel {
  return scriptModel({
    tools: [...new Set(steps.map(({ tool }) => tool))],
    turns: [...steps.map((step) => saidCall(step.tool, spaced(step.arguments))), [end]],
    aside: ['{"title": "Some work"}'],
  });
}

function isWork({ tools }: Shown, { steps }: Task): boolean {
  return steps.every(({ tool }) => tools.includes(tool));
}

function resultsIn({ messages }: Shown): number {
  return messages.filter(({ role }) => role === "result").length;
}

/** Where another call may follow, the engine writes what is between calls, and then the model the end. */
function completionTokens(shown: Shown, task: Task, { writes }: ScriptModel): number {
  if (!isWork(shown, task)) return writes.aside;
  const done = resultsIn(shown);
  const tokens = writes.turns[done] ?? 0;
  if (done >= task.steps.length) return tokens;
  return shown.parallel ? tokens + Buffer.byteLength(afterCall) : tokens - 1;
}
