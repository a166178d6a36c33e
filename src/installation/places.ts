// Where the files of this installation are, and how the program starts itself in a role: in a clone, and bundled.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What a process of its own does beside the server; `src/main.ts` has its module. */
export type Role = "check-database" | "guard-process" | "probe-engine" | "run-model" | "serve-requests";

export type Thread = "checkpoint" | "copy-database";

/** `scripts/release/bundle.ts` sets it: there the folders of the sources are gone, and their files are at the root. */
declare const HEADRACE_BUNDLED: boolean | undefined;
const isBundled = typeof HEADRACE_BUNDLED !== "undefined" && HEADRACE_BUNDLED;

/** A bundle's code may be in any of its chunks; what it was started with is always `app/main.js`. */
const root = isBundled ? dirname(dirname(Bun.main)) : join(import.meta.dir, "..", "..");

const threads: Readonly<Record<Thread, string>> = {
  checkpoint: "storage/sql/checkpoint-thread",
  "copy-database": "storage/backup/backup-thread",
};

export const demoModelFile = join(root, "models", "tiny-demo", "tiny-demo.gguf");

export const dashboardDirectory = join(root, "dist", "dashboard");

export const guidesDirectory = join(root, "dist", "docs");

/** The lock file from which a back-end of the engine is installed. */
export const lockFile = join(root, isBundled ? join("llama", "lock.json") : "package-lock.json");

export const vendorPricesFile = join(root, isBundled ? "assets" : join("src", "prices"), "vendor-prices.json");

/** A file that plain pages load. */
export function pageAsset(name: string): string {
  return join(root, isBundled ? "assets" : join("src", "http", "pages", "assets"), name);
}

/** The package @simplewebauthn/browser as one script. */
export function webauthnScript(): string {
  if (isBundled) return pageAsset("simplewebauthn.js");
  const entry = import.meta.resolve("@simplewebauthn/browser");
  return fileURLToPath(new URL("../dist/bundle/index.umd.min.js", entry));
}

/** The directory of a package that is installed beside or above this one, as Node would find it; undefined: of none. */
export function packageDirectory(name: string): string | undefined {
  for (let directory = root; ; directory = dirname(directory)) {
    const found = join(directory, "node_modules", name);
    if (existsSync(join(found, "package.json"))) return found;
    if (directory === dirname(directory)) return undefined;
  }
}

/** The command that starts this program in a role; the role's own arguments follow. */
export function selfCommand(role: Role): string[] {
  return [process.execPath, join(root, isBundled ? join("app", "main.js") : join("src", "main.ts")), `@${role}`];
}

/** The file of a thread, for `new Worker`. */
export function threadFile(thread: Thread): string {
  return join(root, isBundled ? "app" : "src", `${threads[thread]}.${isBundled ? "js" : "ts"}`);
}
