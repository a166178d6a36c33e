// What the hook of git runs: the check of the commit that is about to be made, in Bun.
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { bunEnvironment, bunExecutable, ensureDependencies, root } from "../setup.mjs";

ensureDependencies({ dev: true });
const message = resolve(process.argv[2] ?? "");
const { status } = spawnSync(bunExecutable(), ["scripts/commits.ts", "--message", message], {
  cwd: root,
  stdio: "inherit",
  env: bunEnvironment(),
});
process.exit(status ?? 1);
