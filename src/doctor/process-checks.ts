// Checks the process: Bun and its limit of outgoing requests, file descriptors, memory, processors, and how it was
// started.
import { readFileSync } from "node:fs";
import { availableParallelism, freemem, totalmem } from "node:os";
import packageJson from "../../package.json" with { type: "json" };
import { requestLimitProblems } from "../config/config.ts";
import { formatBytes } from "../engines/llama/byte-size.ts";
import { type Check, type Finding, failure, ok, warning } from "./finding.ts";
import { type ProcessFacts, processFacts } from "./server-process.ts";
import type { Subject } from "./subject.ts";

/**
 * File descriptors that the server needs besides streams: for files, the database, and idle connections to model
 * servers.
 */
const descriptorsOfOurOwn = 200;
const fewDescriptors = 4_096;
const minMemoryBytes = 512 * 2 ** 20;
/**
 * If more than this share of a limit is used, the limit counts as full. The machine's memory counts as full if less than
 * half of the remaining share is available.
 */
const fullPart = 0.9;

export function processChecks({ server, env }: Subject): Check[] {
  const facts = server?.facts ?? processFacts(process.pid);
  const whose = server?.facts ? `the server, process ${facts.pid}` : "this shell";
  const environment = server ? server.facts?.environment : env;
  return [
    { name: "Bun", run: () => [bun(), requestLimit(environment)] },
    { name: "file descriptors", run: () => fileDescriptors(facts, whose) },
    { name: "memory", run: () => memory(facts) },
    { name: "processors", run: () => processors(facts) },
    ...(server?.facts?.environment ? [{ name: "launcher", run: () => launcher(server.facts?.environment) }] : []),
  ];
}

function bun(): Finding {
  const { bun: wanted } = packageJson.dependencies;
  if (Bun.version === wanted) return ok("Bun", `${wanted}, the version that Headrace is tested with`);
  return warning(
    "Bun",
    `${Bun.version}; Headrace is tested with ${wanted}`,
    "Start it with `npx headrace serve`, which brings its own Bun.",
  );
}

/** Checks Bun's limit of outgoing requests. Undefined if the environment of the process cannot be read. */
function requestLimit(environment: Readonly<Record<string, string | undefined>> | undefined): Finding | undefined {
  if (!environment) return undefined;
  const [problem] = requestLimitProblems(environment);
  if (problem) return failure("outgoing requests", `${problem.path} ${problem.message}`, problem.fix);
  return ok("outgoing requests", `Bun's limit is lifted to ${environment["BUN_CONFIG_MAX_HTTP_REQUESTS"]}`);
}

/** Checks the limit of file descriptors. Each open stream takes two: for its client and for the model server. */
function fileDescriptors({ openFilesLimit, openFiles }: ProcessFacts, whose: string): Finding | undefined {
  const limit = openFilesLimit ?? ownLimit();
  if (limit === undefined) return undefined;
  const name = "file descriptors";
  const now = openFiles === undefined ? "" : `, ${openFiles} in use`;
  if (limit === Number.POSITIVE_INFINITY) return ok(name, `no limit for ${whose}${now}`);
  const streams = Math.max(0, Math.floor((limit - descriptorsOfOurOwn) / 2));
  const found = `${limit} for ${whose}${now}: about ${streams} open streams`;
  const remedy =
    "Raise it: LimitNOFILE=65536 in the systemd unit, --ulimit nofile=65536 of a container, or ulimit -n 65536.";
  if (openFiles !== undefined && openFiles > limit * fullPart) return failure(name, found, remedy);
  return limit < fewDescriptors ? warning(name, found, remedy) : ok(name, found);
}

function ownLimit(): number | undefined {
  try {
    const { stdout } = Bun.spawnSync(["sh", "-c", "ulimit -n"]);
    const text = stdout.toString().trim();
    return text === "unlimited" ? Number.POSITIVE_INFINITY : Number(text) || undefined;
  } catch {
    return undefined;
  }
}

function memory({ memoryBytes, memoryLimitBytes, pid }: ProcessFacts): Finding {
  const name = "memory";
  const available = availableBytes();
  const machine = totalmem();
  const isServer = pid !== process.pid && memoryBytes !== undefined;
  const used = isServer ? `${formatBytes(memoryBytes)} used by the server, ` : "";
  const limit = memoryLimitBytes === undefined ? "" : `, limited to ${formatBytes(memoryLimitBytes)}`;
  const found = `${used}${formatBytes(available)} of ${formatBytes(machine)} free${limit}`;
  if (isServer && memoryLimitBytes !== undefined && memoryBytes > memoryLimitBytes * fullPart) {
    return warning(
      name,
      found,
      "Raise the limit (MemoryMax= of the unit, --memory of the container): beyond it the kernel ends the server.",
    );
  }
  if (Math.min(machine, memoryLimitBytes ?? machine) < minMemoryBytes) {
    return warning(
      name,
      found,
      `Give it ${formatBytes(minMemoryBytes)} at least, and what the models take that it computes itself.`,
    );
  }
  if (available < machine * (1 - fullPart) * 0.5) {
    return warning(name, found, "See what takes it: ps aux --sort=-rss | head. A machine that swaps answers late.");
  }
  return ok(name, found);
}

/** Returns the available bytes of memory. Cached memory is available to any process (proc_meminfo(5)). */
function availableBytes(): number {
  try {
    const kilobytes = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
    return kilobytes === undefined ? freemem() : Number(kilobytes) * 1024;
  } catch {
    return freemem();
  }
}

function processors({ processors: share }: ProcessFacts): Finding {
  const name = "processors";
  const all = availableParallelism();
  if (share === undefined || share >= all) return ok(name, `${all}`);
  const found = `${Math.round(share * 100) / 100} of ${all}, as its group is limited`;
  if (share >= 1) return ok(name, found);
  return warning(
    name,
    found,
    "Give it one at least (CPUQuota=100% of the unit, --cpus 1 of the container): while it is held back, nothing is answered.",
  );
}

function launcher(environment: Readonly<Record<string, string>> | undefined): Finding {
  const launchedBy = environment?.["LAUNCHED_BY"];
  if (launchedBy === undefined) return ok("launcher", "started by Bun directly");
  return ok("launcher", `started by bin/headrace.mjs${launchedBy === "headrace" ? ", which waits for it" : ""}`);
}
