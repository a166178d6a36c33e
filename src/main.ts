// Entry point: runs a command, or one of the processes that a server starts.
import type { Role } from "./installation/paths.ts";

const roles: Readonly<Record<Role, () => Promise<(args: readonly string[]) => Promise<void>>>> = {
  "check-database": async () => (await import("./storage/sql/quick-check-process.ts")).checkDatabase,
  "guard-process": async () => (await import("./processes/guard.ts")).guardProcess,
  "probe-engine": async () => (await import("./engines/llama/engine-probe.ts")).probeEngine,
  "serve-requests": async () => (await import("./server/worker/worker.ts")).serveRequests,
  "run-model": async () => (await import("./engines/llama/worker/main.ts")).runModel,
};

const [first = "", ...others] = process.argv.slice(2);
const role = first.startsWith("@") ? first.slice(1) : "";
if (isRole(role)) {
  // Each process loads only the modules that it needs.
  const run = await roles[role]();
  await run(others);
} else {
  const { runCommand } = await import("./cli/program.ts");
  await runCommand(process.argv.slice(2));
}

function isRole(name: string): name is Role {
  return Object.hasOwn(roles, name);
}
