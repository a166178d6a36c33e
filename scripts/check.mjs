// `npm run check`: types, lint and format, layers, generated files, commits.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { bunEnvironment, bunExecutable, ensureDependencies, root } from "./setup.mjs";

ensureDependencies({ dev: true });
const bin = (name) => join(root, "node_modules", ".bin", name);
const typesOfLastCheck = join(root, "node_modules", ".cache", "types.tsbuildinfo");
const steps = [
  // A second check compiles what changed alone.
  ["types", bin("tsc"), ["--noEmit", "-p", ".", "--incremental", "--tsBuildInfoFile", typesOfLastCheck]],
  ["lint and format", bin("biome"), ["check", "--error-on-warnings", "."]],
  ["layers and structure", bunExecutable(), ["scripts/house.ts"]],
  ["generated files", bunExecutable(), ["scripts/generate.ts", "--check"]],
  ["commits", bunExecutable(), ["scripts/commits.ts"]],
];
// With --write, what can be mended by itself is.
if (process.argv.includes("--write")) {
  steps[1][2] = ["check", "--write", "."];
  steps[2][2].push("--lower");
  steps[3][2] = ["scripts/generate.ts"];
  steps.pop();
  steps.reverse();
}
let failed = 0;
for (const [name, command, args] of steps) {
  const started = Date.now();
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", env: bunEnvironment() });
  console.log(`${status === 0 ? "ok    " : "FAILED"} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  if (status !== 0) failed++;
}
process.exit(failed === 0 ? 0 : 1);
