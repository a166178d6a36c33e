// `npm run dev`: the server, started again whenever a source file changes, and the dashboard, built again when one of its
// own does; the data stays in .headrace/.
import { spawn } from "node:child_process";
import { watch } from "node:fs";
import { join } from "node:path";
import { bunEnvironment, bunExecutable, ensureDashboard, ensureDependencies, root } from "./setup.mjs";

ensureDependencies({ dev: true });
ensureDashboard();
let building;
watch(join(root, "web"), { recursive: true }, () => {
  clearTimeout(building);
  building = setTimeout(ensureDashboard, 100);
});
const data = ["--data-dir", join(root, ".headrace")];
const args = ["--watch", "src/main.ts", "serve", ...data, ...process.argv.slice(2)];
const child = spawn(bunExecutable(), args, { cwd: root, stdio: "inherit", env: bunEnvironment() });
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code) => process.exit(code ?? 1));
