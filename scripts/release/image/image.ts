// Makes the OCI image without a daemon: layers of Debian's packages, Bun and the bundle, in a directory that tools push.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { modifiedAt } from "../time.ts";
import { config, labels } from "./config.ts";
import { writeLayers } from "./layers.ts";
import { writeLayout } from "./layout.ts";

const root = join(import.meta.dir, "..", "..", "..");

/**
 * Makes `image/` in `release`, for Linux x64, of the bundle in `package/` there. Needs mmdebstrap. Gives the size of what
 * a machine has to fetch, in bytes.
 */
export function makeImage(release: string): number {
  const directory = join(release, "image");
  rmSync(directory, { recursive: true, force: true });
  const made = mkdtempSync(join(tmpdir(), "headrace-image-"));
  try {
    const git = (...args: string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
    const seconds = modifiedAt();
    const created = new Date(seconds * 1000).toISOString();
    const reported = {
      ...labels,
      "org.opencontainers.image.version": packageJson.version,
      "org.opencontainers.image.revision": git("rev-parse", "HEAD"),
      "org.opencontainers.image.created": created,
    };
    return writeLayout(directory, {
      layers: writeLayers(made, join(release, "package"), seconds),
      ...{ config: { ...config, Labels: reported }, annotations: reported },
      ...{ architecture: "amd64", created, tag: packageJson.version },
    });
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}
