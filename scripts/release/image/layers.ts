// The file system of the image in layers, from what changes least to what changes most: Debian's libraries, Bun with the
// engine's back-end, the data directory, the program.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { user } from "./config.ts";

const root = join(import.meta.dir, "..", "..", "..");

/** The C and C++ libraries of Bun and the engine, and a shell for `headrace` and for who looks around. */
const debianPackages = ["base-files", "dash", "libc6", "libgcc-s1", "libstdc++6"];

const accounts = {
  "etc/passwd": `root:x:0:0:root:/root:/usr/sbin/nologin\nheadrace:x:${user}:${user}::/data:/usr/sbin/nologin\n`,
  "etc/group": `root:x:0:\nheadrace:x:${user}:\n`,
  "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
};

/**
 * Writes each layer as a tar file into `directory` and gives their paths, the lowest first. The same files give the same
 * bytes, with `modifiedAt`, in Unix seconds, as the time of each.
 */
export function writeLayers(directory: string, packageDirectory: string, modifiedAt: number): string[] {
  const made = (name: string, fill: (folder: string) => void, owner = 0): string => {
    const folder = join(directory, name);
    mkdirSync(folder, { recursive: true });
    fill(folder);
    const file = join(directory, `${name}.tar`);
    const same = ["--sort=name", "--numeric-owner", `--owner=${owner}`, `--group=${owner}`, `--mtime=@${modifiedAt}`];
    const times = ["--format=posix", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"];
    // No member for the root of the layer: its mode and owner are not its matter.
    execFileSync("sh", ["-c", 'cd "$1" && shift && exec tar "$@" -- *', "sh", folder, ...same, ...times, "-cf", file]);
    rmSync(folder, { recursive: true });
    return file;
  };
  return [
    made("debian", (folder) => installDebian(folder, modifiedAt)),
    made("runtime", installRuntime),
    made("data", (folder) => mkdirSync(join(folder, "data"), { mode: 0o700 }), user),
    made("program", (folder) => installProgram(folder, packageDirectory)),
  ];
}

function installDebian(folder: string, modifiedAt: number): void {
  const archive = `${folder}.full.tar`;
  const args = ["--quiet", "--variant=extract", `--include=${debianPackages.join(",")}`, "bookworm", archive];
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(modifiedAt) };
  execFileSync("mmdebstrap", args, { env, stdio: ["ignore", "ignore", "inherit"] });
  // What the machine that runs it gives it, what belongs to who installs packages, and manuals.
  const left = [
    "./dev/*",
    "./etc/fstab",
    "./etc/host*",
    "./etc/resolv.conf",
    "./var/*",
    "./usr/share/man",
    "./usr/share/locale",
  ];
  execFileSync("tar", ["-xf", archive, "-C", folder, "--no-same-owner", ...left.map((name) => `--exclude=${name}`)]);
  rmSync(archive);
  for (const [name, text] of Object.entries(accounts)) writeFileSync(join(folder, name), text);
}

/** What runs this is what will run the program. */
function installRuntime(folder: string): void {
  mkdirSync(join(folder, "usr/local/bin"), { recursive: true });
  copy(process.execPath, join(folder, "usr/local/bin/bun"), 0o755);
  const backEnd = "node_modules/@node-llama-cpp/linux-x64";
  copy(join(root, backEnd), join(folder, "opt/headrace", backEnd));
}

function installProgram(folder: string, packageDirectory: string): void {
  copy(packageDirectory, join(folder, "opt/headrace"));
  copy(join(root, "deploy/health-check.ts"), join(folder, "opt/headrace/health-check.ts"));
  mkdirSync(join(folder, "usr/local/bin"), { recursive: true });
  copy(join(root, "deploy/headrace"), join(folder, "usr/local/bin/headrace"), 0o755);
}

/** The modes of a clone are those of its owner's umask: in the image everybody reads, and nobody writes. */
function copy(from: string, to: string, mode?: number): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, dereference: true });
  execFileSync("chmod", ["-R", mode === undefined ? "u=rwX,go=rX" : mode.toString(8), to]);
}
