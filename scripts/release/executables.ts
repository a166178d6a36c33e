// One file for each system: Bun with a small entry, which carries the package and unpacks it at its first start.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { backEndOf, type Target } from "./targets.ts";

const root = join(import.meta.dir, "..", "..");

/** Makes the executable of a target from `package/` in `release`; gives its path. */
export async function makeExecutable(target: Target, release: string): Promise<string> {
  const work = join(release, "work", target);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const archive = join(work, "package.tar.zst");
  const tar = packageTar(target, release, join(work, "package"));
  const digest = createHash("sha256").update(tar).digest("hex");
  const entries = readdirSync(join(work, "package"), { recursive: true }).length;
  writeFileSync(archive, compressed(tar, digest));
  await Bun.build({
    entrypoints: [join(root, "src", "installation", "executable.ts")],
    minify: true,
    define: { HEADRACE_DIGEST: JSON.stringify(digest), HEADRACE_ENTRIES: String(entries) },
    // The name of the file is in the file: the same for all of them.
    compile: { target: `bun-${target}`, outfile: join(work, "headrace") },
    plugins: [
      {
        name: "package",
        setup(build) {
          build.onResolve({ filter: /\/package\.tar\.zst$/ }, () => ({ path: archive }));
        },
      },
    ],
  });
  const suffix = target.startsWith("windows") ? ".exe" : "";
  const built = [join(work, "headrace.exe"), join(work, "headrace")].find((path) => existsSync(path));
  if (built === undefined) throw new Error(`Bun made no executable for ${target}.`);
  const file = join(release, `headrace-${packageJson.version}-${target}${suffix}`);
  renameSync(built, file);
  rmSync(work, { recursive: true });
  return file;
}

/** Targets with the same back-end, or none, carry the same. */
const packed = new Map<string, Uint8Array>();

function compressed(tar: Buffer, digest: string): Uint8Array {
  const known = packed.get(digest) ?? Bun.zstdCompressSync(tar, { level: 12 });
  packed.set(digest, known);
  return known;
}

/** The package with its back-end as one archive, the same bytes for the same content. */
function packageTar(target: Target, release: string, directory: string): Buffer {
  cpSync(join(release, "package"), directory, { recursive: true });
  // Bun is the executable itself.
  rmSync(join(directory, "bin"), { recursive: true });
  addBackEnd(target, release, directory);
  const file = `${directory}.tar`;
  execFileSync("tar", [...sameBytes, "-cf", file, "-C", directory, "."]);
  return readFileSync(file);
}

const sameBytes = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw"];

/** Puts the engine's back-end for a target where the program finds it in `directory`. */
export function addBackEnd(target: Target, release: string, directory: string): void {
  const backEnd = backEndOf(target, release);
  if (backEnd === undefined) return;
  const place = join(directory, "node_modules", backEnd.name);
  for (const name of ["package.json", "LICENSE", "bins"]) {
    const from = join(backEnd.directory, name);
    if (existsSync(from)) cpSync(from, join(place, name), { recursive: true });
  }
}
