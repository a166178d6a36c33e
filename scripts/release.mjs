// `npm run release`: makes the package and all else that is published, in dist/release.
import { spawnSync } from "node:child_process";
import { bunEnvironment, bunExecutable, ensureDashboard, ensureDependencies, ensureGuides, root } from "./setup.mjs";

ensureDependencies({ dev: true });
ensureDashboard();
if (!ensureGuides()) process.exit(1);
const args = ["scripts/release/main.ts", ...process.argv.slice(2)];
process.exit(spawnSync(bunExecutable(), args, { cwd: root, stdio: "inherit", env: bunEnvironment() }).status ?? 1);
