// Where npm has put Bun, in a clone and beside the package.
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Of the clone or of the package. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Whether this is a clone, with the sources and what is to be made of them. */
export const isClone = existsSync(join(root, "src", "main.ts"));

/**
 * The Bun executable that npm installed for this platform: in a package of its own, or, after an install in which the
 * scripts of packages were run, where that of `bun` has moved it. Without that script there is only a text of some bytes.
 * Ends the process, saying what to do, where there is none.
 */
export function bunExecutable() {
  const platform = { darwin: "darwin", linux: "linux", win32: "windows" }[process.platform] ?? process.platform;
  const arch = { arm64: "aarch64", x64: "x64" }[process.arch] ?? process.arch;
  const file = platform === "windows" ? "bun.exe" : "bun";
  for (const name of [`bun-${platform}-${arch}`, `bun-${platform}-${arch}-musl`]) {
    for (let dir = root; ; dir = dirname(dir)) {
      const path = join(dir, "node_modules", "@oven", name, "bin", file);
      if (existsSync(path)) return path;
      if (dir === dirname(dir)) break;
    }
  }
  const moved = join(root, "node_modules", "bun", "bin", "bun.exe");
  if (existsSync(moved) && statSync(moved).size > 1_000_000) return moved;
  const remedy = isClone ? "Remove node_modules and run the command again" : "Install the package of Headrace again";
  process.stderr.write(
    `No Bun executable for ${process.platform}-${process.arch} in node_modules/@oven. ${remedy}; ` +
      "optional dependencies must not be omitted.\n",
  );
  process.exit(1);
}
