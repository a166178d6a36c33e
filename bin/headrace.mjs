#!/usr/bin/env node
// Starts Headrace under Bun from plain Node, in a clone, which is set up first, or as the package that npm installed: becomes
// Bun where Node and the system can do that, and elsewhere hands over arguments, terminal and signals.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { bunExecutable, isClone, root } from "./bun.mjs";
import { bunEnvironment } from "./bun-environment.mjs";

if (isClone) {
  const { ensureDashboard, ensureDependencies } = await import("../scripts/setup.mjs");
  ensureDependencies();
  if (process.argv[2] === "serve") ensureDashboard();
}
const program = isClone ? join(root, "src", "main.ts") : join(root, "app", "main.js");
const bun = bunExecutable();
const args = [program, ...process.argv.slice(2)];
const underNpm = process.env.npm_lifecycle_event !== undefined;
// Node has it from 22.15 on; a launcher that waited would keep some 40 MB for nothing.
if (process.platform !== "win32" && process.execve) {
  process.execve(bun, [bun, ...args], bunEnvironment({ LAUNCHED_BY: underNpm ? "npm" : "itself" }));
}
const child = spawn(bun, args, { stdio: "inherit", env: bunEnvironment({ LAUNCHED_BY: "headrace" }) });
// npm ends at SIGTERM without a word to this process: as its child, end as well.
if (underNpm) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) child.kill("SIGTERM");
  }, 1000).unref();
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  process.stderr.write(`Cannot start Bun: ${error.message}\n`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  // The package names no Bun for processors of before 2013, as npm cannot tell them apart.
  if (signal === "SIGILL") {
    process.stderr.write(
      "Bun was ended by SIGILL: this processor is without AVX2. The executable for linux-x64-baseline runs on it.\n",
    );
  }
  // As shells count.
  process.exit(code ?? 128 + constants.signals[signal]);
});
