// The systems that executables are made for, and the engine's back-end for each.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..", "..");

export const targets = [
  "linux-x64",
  "linux-x64-baseline",
  "linux-x64-musl",
  "linux-arm64",
  "linux-arm64-musl",
  "darwin-arm64",
  "darwin-x64",
  "windows-x64",
  "windows-arm64",
] as const;
export type Target = (typeof targets)[number];

/**
 * The packages of llama.cpp for the processor. Musl has none, and for macOS and Windows none is published in the version
 * of the library, without which it is not loaded.
 */
const backEnds: Partial<Record<Target, string>> = {
  "linux-x64": "@node-llama-cpp/linux-x64",
  "linux-x64-baseline": "@node-llama-cpp/linux-x64",
  "linux-arm64": "@node-llama-cpp/linux-arm64",
};

/** The back-end's package and the directory that it is in; undefined for a target without the engine. */
export function backEndOf(target: Target, release: string): { name: string; directory: string } | undefined {
  const name = backEnds[target];
  if (name === undefined) return undefined;
  const installed = join(root, "node_modules", name);
  return { name, directory: existsSync(installed) ? installed : fetched(name, release) };
}

/** The path of Bun for Linux on ARM64. */
export function bunForArm64(release: string): string {
  return join(fetched("@oven/bun-linux-aarch64", release), "bin", "bun");
}

/** The directory of a package from the registry, of the version and with the bytes that the lock file names. */
function fetched(name: string, release: string): string {
  const lock: { packages: Record<string, { version: string; integrity: string }> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const entry = lock.packages[`node_modules/${name}`];
  if (entry === undefined) throw new Error(`package-lock.json has no ${name}: docs/adr/0006-dependencies.md.`);
  const specifier = `${name}@${entry.version}`;
  const sha512 = entry.integrity.replace("sha512-", "");
  const directory = join(release, "fetched", specifier.replaceAll("/", "+"));
  if (!existsSync(join(directory, "package", "package.json"))) {
    mkdirSync(directory, { recursive: true });
    const args = ["pack", specifier, "--json", "--loglevel=error"];
    const [packed] = JSON.parse(execFileSync("npm", args, { cwd: directory, encoding: "utf8" }));
    const tarball = join(directory, packed.filename);
    const found = createHash("sha512").update(readFileSync(tarball)).digest("base64");
    if (found !== sha512) throw new Error(`${specifier} has the SHA-512 ${found}, and not ${sha512}.`);
    execFileSync("tar", ["-xzf", tarball, "-C", directory]);
  }
  return join(directory, "package");
}
