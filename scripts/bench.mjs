// `npm run bench`: installs what the benchmark needs and runs it.
import { spawnSync } from "node:child_process";
import { bunEnvironment, bunExecutable, ensureDependencies, root } from "./setup.mjs";

ensureDependencies({ dev: true });
const args = ["bench/main.ts", ...process.argv.slice(2)];
process.exit(spawnSync(bunExecutable(), args, { cwd: root, stdio: "inherit", env: bunEnvironment() }).status ?? 1);
