// A disk of a test's own, in memory, so small that it can be filled; only root may mount one.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const canMount = process.platform === "linux" && process.getuid?.() === 0 && Bun.which("mount") !== null;

/** A disk of its own, so small that it can be filled. */
export function smallDisk(megabytes: number): { path: string } & AsyncDisposable {
  const path = mkdtempSync(join(tmpdir(), "headrace-disk-"));
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]);
  if (!mounted.success) throw new Error(mounted.stderr.toString());
  return {
    path,
    async [Symbol.asyncDispose]() {
      Bun.spawnSync(["umount", path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** To the last byte. */
export function fillDisk(path: string): void {
  for (const size of [65_536, 4_096, 1, 1]) {
    for (let part = 0; ; part++) {
      try {
        writeFileSync(join(path, `filler-${size}-${part}-${Math.random()}`), new Uint8Array(size));
      } catch {
        break;
      }
    }
  }
}

/** Takes away what filled it. */
export function emptyDisk(path: string): void {
  for (const name of readdirSync(path)) if (name.startsWith("filler-")) rmSync(join(path, name));
}
