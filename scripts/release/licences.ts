// The licences of what is bundled: their texts ask to go where the programs go, and bundling leaves them behind.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..", "..");

interface LockEntry {
  version: string;
  license?: string;
  dev?: boolean;
}

/** One text with each package that may run, its licence, and what its makers say of that in files of their own. */
export function licences(): string {
  const lock: { packages: Record<string, LockEntry> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const parts = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== "" && dev !== true && existsSync(join(root, path)))
    .map(([path, { version, license = "see below" }]) => {
      const texts = readdirSync(join(root, path))
        .filter((name) => /^(?:licen[cs]e|copying|notice)/i.test(name))
        .sort()
        .map((name) => readFileSync(join(root, path, name), "utf8").trim());
      return [`${path.replace(/^.*node_modules\//, "")} ${version}: ${license}`, ...texts].join("\n\n");
    });
  return `${["Headrace contains these packages, each under its own licence.", ...parts].join(`\n\n${"-".repeat(72)}\n\n`)}\n`;
}
