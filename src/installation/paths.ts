// Paths in this installation, which is a source clone or a bundle, and commands for the program's other processes.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A separate process beside the server. `src/main.ts` names the module of each role. */
export type Role = "check-database" | "guard-process" | "probe-engine" | "run-model" | "serve-requests";

export type Thread = "checkpoint" | "copy-database";

/** Set by `scripts/release/bundle.ts`: a bundle has no source folders, and its files are at the root. */
declare const HEADRACE_BUNDLED: boolean | undefined;
const isBundled = typeof HEADRACE_BUNDLED !== "undefined" && HEADRACE_BUNDLED;

/** The code of a bundle may be in any of its chunks, but the started file is always `app/main.js`. */
const root = isBundled ? dirname(dirname(Bun.main)) : join(import.meta.dir, "..", "..");

const threads: Readonly<Record<Thread, string>> = {
  checkpoint: "storage/sql/checkpoint-thread",
  "copy-database": "storage/backup/backup-thread",
};

export const demoModelFile = join(root, "models", "tiny-demo", "tiny-demo.gguf");

export const dashboardDirectory = join(root, "dist", "dashboard");

export const guidesDirectory = join(root, "dist", "docs");

/** The lock file for installing back ends of the built-in engine. */
export const lockFile = join(root, isBundled ? join("llama", "lock.json") : "package-lock.json");

export const vendorPricesFile = join(root, isBundled ? "assets" : join("src", "prices"), "vendor-prices.json");

/** Returns the path of a file that the HTML pages load. */
export function pageAsset(name: string): string {
  return join(root, isBundled ? "assets" : join("src", "http", "pages", "assets"), name);
}

/** Returns the package @simplewebauthn/browser as one script. */
export function webauthnScript(): string {
  if (isBundled) return pageAsset("simplewebauthn.js");
  const entry = import.meta.resolve("@simplewebauthn/browser");
  return fileURLToPath(new URL("../dist/bundle/index.umd.min.js", entry));
}

/** Returns the directory of an installed package, found as Node would find it; undefined if it is not installed. */
export function packageDirectory(name: string): string | undefined {
  for (let directory = root; ; directory = dirname(directory)) {
    const found = join(directory, "node_modules", name);
    if (existsSync(join(found, "package.json"))) return found;
    if (directory === dirname(directory)) return undefined;
  }
}

/** Returns the command that starts this program in a role. The caller appends the arguments. */
export function selfCommand(role: Role): string[] {
  return [process.execPath, join(root, isBundled ? join("app", "main.js") : join("src", "main.ts")), `@${role}`];
}

/** Returns the path of a thread's file, for `new Worker`. */
export function threadFile(thread: Thread): string {
  return join(root, isBundled ? "app" : "src", `${threads[thread]}.${isBundled ? "js" : "ts"}`);
}
