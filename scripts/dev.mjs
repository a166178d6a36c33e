// `npm run dev`: the server, started again whenever a source file changes; its data stays in .headrace/.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { bunEnvironment, bunExecutable, ensureDependencies, root } from "./setup.mjs";

ensureDependencies({ dev: true });
const data = ["--data-dir", join(root, ".headrace")];
const args = ["--watch", "src/main.ts", "serve", ...data, ...process.argv.slice(2)];
const child = spawn(bunExecutable(), args, { cwd: root, stdio: "inherit", env: bunEnvironment() });
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code) => process.exit(code ?? 1));
