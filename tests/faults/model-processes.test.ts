// Commands that serve models under random traffic, and when their gateway is killed.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markedProcesses, markOf } from "../../src/processes/orphans.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { seeded } from "../support/seeded.ts";
import { startServerProcess } from "../support/server-process.ts";

const program = join(import.meta.dir, "..", "support", "model-server.ts");
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-models-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

interface Model {
  name: string;
  gigabytes: number;
  args: string;
}

function yamlOf(models: readonly Model[], ram: string): string {
  const commands = models.map(
    ({ name, gigabytes, args }) => `
    - name: ${name}
      command: ${process.execPath} ${program} --port \${PORT} --model ${name} --diary ${join(directory, "diary")} ${args}
      models: [${name}]
      memory: { ram: ${gigabytes}GB }
      parallel: 2`,
  );
  return `engine:\n  memory: { ram: ${ram} }\n  commands:${commands.join("")}\n`;
}

/** What the servers told, in the order in which it happened. */
function diary(): { what: string; model: string; pid: string; atMs: number }[] {
  const lines = readFileSync(join(directory, "diary"), "utf8").split("\n").filter(Boolean);
  return lines
    .map((line) => line.split(" "))
    .map(([what = "", model = "", pid = "", at = ""]) => ({ what, model, pid, atMs: Number(at) }))
    .sort((a, b) => a.atMs - b.atMs);
}

/** Throws at the first moment at which too much ran at once, a model ran twice, or one ended that was answering. */
function expectOrder(models: readonly Model[], maxGigabytes: number): void {
  const sizeOf = new Map(models.map(({ name, gigabytes }) => [name, gigabytes]));
  const running = new Map<string, string>();
  const answering = new Map<string, number>();
  for (const { what, model, pid } of diary()) {
    if (what === "started") {
      expect([model, running.get(model)]).toEqual([model, undefined]);
      running.set(model, pid);
      const sum = [...running.keys()].reduce((total, name) => total + (sizeOf.get(name) ?? 0), 0);
      expect(sum).toBeLessThanOrEqual(maxGigabytes);
    }
    if (what === "began") answering.set(pid, (answering.get(pid) ?? 0) + 1);
    if (what === "answered") answering.set(pid, (answering.get(pid) ?? 0) - 1);
    if (what === "ended") {
      expect([model, answering.get(pid) ?? 0]).toEqual([model, 0]);
      running.delete(model);
    }
  }
}

const seconds = long ? 600 : 10;
const clients = 8;

describe("model commands", () => {
  test(
    `keeps the memory budget for 20 model commands with memory for three over ${seconds} s, and answers every request`,
    async () => {
      const random = seeded(7);
      const models = Array.from({ length: 20 }, (_, index): Model => {
        const args = `--load-ms ${Math.floor(300 * random())} --answer-ms ${Math.floor(150 * random())}`;
        return { name: `m${index}`, gigabytes: 1 + (index % 3) / 2, args };
      });
      await using server = await startHeadrace({ yaml: yamlOf(models, "4.5GB") });
      const untilMs = performance.now() + seconds * 1000;
      const statuses: number[] = [];
      const client = async () => {
        while (performance.now() < untilMs) {
          // Some are asked for often, and most now and then.
          const model = models[Math.floor(models.length * random() ** 2)]?.name;
          const messages = [{ role: "user", content: "hi" }];
          const response = await server.request("/v1/chat/completions", {
            body: { model, messages, stream: random() < 0.5 },
          });
          await response.text();
          statuses.push(response.status);
        }
      };
      await Promise.all(Array.from({ length: clients }, client));
      expect(new Set(statuses)).toEqual(new Set([200]));
      expectOrder(models, 4.5);
      const starts = diary().filter(({ what }) => what === "started").length;
      expect(starts).toBeGreaterThan(3);
      console.log(`${statuses.length} requests, ${starts} starts`);
      expect(server.logged("model_failed")).toEqual([]);
    },
    (seconds + 120) * 1000,
  );

  // long-lived: modelProcess.server
  test("leaves no model command or descendant after kill -9 of the gateway", async () => {
    const args = `--brood${long ? " --stubborn" : ""}`;
    const models = ["a", "b"].map((name) => ({ name, gigabytes: 1, args }));
    const config = join(directory, "headrace.yaml");
    writeFileSync(config, yamlOf(models, "4GB").replaceAll("parallel: 2", "preload: true"));
    const dataDir = join(directory, "data");
    await using server = await startServerProcess({ dataDir, config });
    await until(() => markedProcesses(markOf(dataDir, "")).length === 4, "both run, each with a child");
    server.process.kill("SIGKILL");
    await until(() => markedProcesses(markOf(dataDir, "")).length === 0, "nothing is left", 15_000);
  });

  test("ends leftover model commands on the next start if their guards were killed too", async () => {
    const models = [{ name: "a", gigabytes: 1, args: "--brood" }];
    const config = join(directory, "headrace.yaml");
    writeFileSync(config, yamlOf(models, "4GB").replaceAll("parallel: 2", "preload: true"));
    const dataDir = join(directory, "data");
    await using server = await startServerProcess({ dataDir, config });
    const pids = await until(() => {
      const found = markedProcesses(markOf(dataDir, ""));
      return found.length === 2 ? found : undefined;
    }, "it runs, with a child");
    const parents = pids.map((pid) =>
      Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]),
    );
    const guards = parents.filter((pid) => !pids.includes(pid) && pid !== 1);
    server.process.kill("SIGKILL");
    for (const pid of guards) process.kill(pid, "SIGKILL");
    await server.process.exited;
    expect(markedProcesses(markOf(dataDir, ""))).toHaveLength(2);
    writeFileSync(config, yamlOf(models, "4GB"));
    await using next = await startServerProcess({ dataDir, config });
    expect(markedProcesses(markOf(dataDir, ""))).toEqual([]);
    expect(next.log()).toContain('"event":"model_processes_left"');
  });
});
