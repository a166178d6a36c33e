// A real Headrace process for the benchmark: its own data directory, production mode, its log written to a file.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memorySettings } from "../bin/bun-environment.mjs";
import { freePort, stop, until } from "./child.ts";
import { bookedUsage, createGovernedKey, type UsageTotals } from "./governance.ts";
import { configuration, limits, type ServedModels, servedIds } from "./headrace-config.ts";
import { processTree } from "./process-usage.ts";

export interface Headrace {
  port: number;
  /** A key with limits and quotas of its own, which count beside those of the key that made it and of the account. */
  key: string;
  /** The key that the start made. */
  firstKey: string;
  /** The gateway and, where the built-in engine runs, its processes. */
  pids(): readonly number[];
  /** The launcher, where it waits beside the gateway. */
  launcherPids(): readonly number[];
  /** The totals of the account in its ledger, by way of `GET /v1/usage`. */
  booked(): Promise<UsageTotals>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface HeadraceOptions extends ServedModels {
  /** Undefined: no upstream, the built-in demo model instead. */
  upstreamPort: number | undefined;
  /** One process unless said otherwise. */
  workers?: number;
  /** The beginning of its command, as `placement.ts` gives it. */
  prefix?: readonly string[];
  /** The directory for its CPU profile when it ends. */
  profileDir?: string | undefined;
  /** Whether `bin/headrace.mjs` starts it, as a user would. */
  byLauncher?: boolean;
  /** Fills the data directory, which an earlier start has made. */
  prepare?: (dataDir: string) => Promise<void>;
}

const main = new URL("../src/main.ts", import.meta.url).pathname;
const launcher = new URL("../bin/headrace.mjs", import.meta.url).pathname;
const demoModel = "tiny-demo";

export async function startHeadrace(options: HeadraceOptions): Promise<Headrace> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-bench-"));
  const installation = install(directory, options);
  let child: Bun.Subprocess | undefined;
  const dispose = async () => {
    if (child) await stop(child);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    if (options.prepare) {
      child = installation.start(0);
      await installation.listening(child);
      await stop(child);
      await options.prepare(installation.data);
    }
    child = installation.start(0);
    const { pid } = child;
    const port = await installation.listening(child);
    const firstKey = installation.firstKey();
    const models = options.upstreamPort === undefined ? [demoModel] : servedIds(options);
    await until(() => serves(port, firstKey, models), `Headrace serves ${models.length} models`);
    const key = options.byLauncher ? firstKey : await createGovernedKey(port, firstKey);
    return {
      port,
      key,
      firstKey,
      pids: () => processTree(pid),
      launcherPids: () => (options.byLauncher && processTree(pid).length > 1 ? [pid] : []),
      booked: () => bookedUsage(port, firstKey),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/**
 * Milliseconds from the start of the process to the first 200 of `/healthz`, `count` times, on data of an earlier
 * start. The built-in engine is off.
 */
export async function measureStarts(
  count: number,
  options: Pick<HeadraceOptions, "upstreamPort" | "prefix">,
): Promise<number[]> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-bench-start-"));
  const installation = install(directory, options);
  const times: number[] = [];
  try {
    for (let start = 0; start <= count; start++) {
      // A known port: what the log says comes a moment later than what the socket does.
      const port = await freePort();
      const startedMs = performance.now();
      const child = installation.start(port);
      try {
        await until(() => healthy(port), "Headrace answers /healthz");
        // The first one makes the database and the key.
        if (start > 0) times.push(performance.now() - startedMs);
      } finally {
        await stop(child);
      }
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return times;
}

function install(directory: string, options: HeadraceOptions) {
  const { upstreamPort, profileDir, byLauncher, prefix = [] } = options;
  const config = join(directory, "headrace.yaml");
  const data = join(directory, "data");
  const log = join(directory, "headrace.log");
  writeFileSync(config, upstreamPort === undefined ? limits : configuration(upstreamPort, options));
  const flags = ["--mode", "production", "--public-url", "http://127.0.0.1", "--no-discover-local"];
  if (upstreamPort !== undefined) flags.push("--no-demo");
  if (options.workers !== undefined) flags.push("--workers", String(options.workers));
  flags.push("--config", config, "--data-dir", data, "--log-format", "json");
  const profiler = profileDir === undefined ? [] : ["--cpu-prof", "--cpu-prof-md", `--cpu-prof-dir=${profileDir}`];
  const portInLog = (child: Bun.Subprocess) => {
    const text = readFileSync(log, "utf8");
    if (child.exitCode !== null) throw new Error(`Headrace ended with exit code ${child.exitCode}:\n${text}`);
    for (const line of text.split("\n").slice(0, -1)) {
      const entry = JSON.parse(line) as { event?: unknown; port?: unknown };
      if (entry.event === "listening" && typeof entry.port === "number") return entry.port;
    }
    return undefined;
  };
  return {
    data,
    start(port: number): Bun.Subprocess {
      // A file, as under a service manager: a pipe would charge this process with reading it.
      const output = openSync(log, "w");
      const program = byLauncher ? ["node", launcher] : [process.execPath, ...profiler, main];
      const command = [...prefix, ...program, "serve", "--port", String(port), ...flags];
      const child = Bun.spawn(command, { stdin: "ignore", stdout: output, stderr: output, env: environment() });
      closeSync(output);
      return child;
    },
    listening: (child: Bun.Subprocess) => until(() => portInLog(child), "Headrace listens", 60_000),
    firstKey(): string {
      const { api_key } = JSON.parse(readFileSync(join(data, "credentials.json"), "utf8")) as { api_key: string };
      return api_key;
    },
  };
}

/** The environment that the launcher gives, and nothing of what this shell has set for a Headrace of its own. */
function environment(): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("HEADRACE_"));
  return { ...memorySettings, ...Object.fromEntries(own), BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };
}

async function healthy(port: number): Promise<true | undefined> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/healthz`)).status === 200 || undefined;
  } catch {
    return undefined;
  }
}

async function serves(port: number, key: string, models: readonly string[]): Promise<true | undefined> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw new Error(`GET /v1/models answered ${response.status}: ${await response.text()}`);
  const { data } = (await response.json()) as { data: { id: string }[] };
  const served = new Set(data.map(({ id }) => id));
  return models.every((id) => served.has(id)) || undefined;
}
