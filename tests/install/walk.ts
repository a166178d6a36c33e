// A program in namespaces of its own: starts an installed Headrace in a small system without a network, has an answer, and again.
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/headrace.ts";

export interface Walk {
  /** The root of the system. */
  system: string;
  /** Within it. */
  command: readonly string[];
  user?: string;
  dataDir: string;
  env?: Record<string, string>;
  /** npm starts the command, and ends by a signal before what it has started does. */
  byNpm?: boolean;
}

export interface Walked {
  answer: string;
  /** From the start to where it is ready, first and second time. */
  startMs: [number, number];
  /** Proportional set size of the server with its model's process, in bytes. */
  memoryBytes: number;
  /** Whether the second start knows the key of the first. */
  keptKey: boolean;
  /** Requests of the account, as the second start tells them. */
  keptRequests: number;
  /** Processes that are left after the end. */
  left: number;
}

const port = 7545;
const url = `http://127.0.0.1:${port}`;

if (import.meta.main) {
  const walk: Walk = JSON.parse(process.argv[2] ?? "");
  Bun.spawnSync(["ip", "link", "set", "lo", "up"]);
  Bun.spawnSync(["mount", "-t", "proc", "proc", "/proc"]);
  Bun.spawnSync(["mount", "-t", "proc", "proc", join(walk.system, "proc")]);
  const walked = await walkThrough(walk);
  process.stdout.write(`\n${JSON.stringify(walked)}\n`);
}

async function walkThrough(walk: Walk): Promise<Walked> {
  const first = await start(walk);
  const key = keyIn(walk);
  const answer = await streamed(key);
  const memoryBytes = memoryWithin(walk.system);
  await stop(walk, first.child);
  const second = await start(walk);
  const keptKey = keyIn(walk) === key && (await ask("/v1/models", key)).status === 200;
  const usage = (await (await ask("/v1/usage", key)).json()) as { data: { requests: number }[] };
  await stop(walk, second.child);
  return {
    answer,
    startMs: [first.ms, second.ms],
    memoryBytes,
    keptKey,
    keptRequests: usage.data.reduce((sum, { requests }) => sum + requests, 0),
    left: processesWithin(walk.system).length,
  };
}

async function start({ system, command, dataDir, user = "root", env = {} }: Walk) {
  const began = performance.now();
  const own = ["serve", "--no-discover-local", "--data-dir", dataDir, "--port", String(port)];
  const child = Bun.spawn(["chroot", `--userspec=${user}`, system, ...command, ...own], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", ...env },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
  await until(
    async () => {
      if (child.exitCode !== null) throw new Error(`It ended with ${child.exitCode}.`);
      return (await fetch(`${url}/readyz`).catch(() => undefined))?.ok && existsSync(credentialsIn(system, dataDir));
    },
    "the server is ready",
    // A clone installs its packages and builds the dashboard first.
    150_000,
  );
  return { child, ms: Math.round(performance.now() - began) };
}

async function stop({ system, byNpm }: Walk, child: Bun.Subprocess): Promise<void> {
  child.kill("SIGTERM");
  await child.exited;
  if (byNpm) await until(() => processesWithin(system).length === 0, "all processes have ended", 30_000);
}

function keyIn({ system, dataDir }: Walk): string {
  return JSON.parse(readFileSync(credentialsIn(system, dataDir), "utf8")).api_key;
}

function credentialsIn(system: string, dataDir: string): string {
  return join(system, dataDir, "credentials.json");
}

function ask(path: string, key: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(`${url}${path}`, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
}

/** The text of a stream that came to its end; else what came. */
async function streamed(key: string): Promise<string> {
  const messages = [{ role: "user", content: "Who are you?" }];
  const response = await ask("/v1/chat/completions", key, {
    model: "tiny-demo",
    stream: true,
    temperature: 0,
    messages,
  });
  const text = await response.text();
  const events = text.split("\n\n").filter((event) => event.startsWith("data: "));
  if (events.pop() !== "data: [DONE]") return text;
  return events.map((event) => JSON.parse(event.slice("data: ".length)).choices[0]?.delta.content ?? "").join("");
}

function processesWithin(system: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readlinkSync(`/proc/${pid}/root`) === system;
    } catch {
      return false;
    }
  });
}

function memoryWithin(system: string): number {
  const kilobytes = processesWithin(system).map((pid) => {
    const [, size = "0"] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")) ?? [];
    return Number(size);
  });
  return kilobytes.reduce((sum, size) => sum + size, 0) * 1024;
}
