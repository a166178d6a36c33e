// A small system in a directory, for one test: Debian's essential packages, or layers of an image, and what is installed into it.
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { smallDebian } from "../../scripts/test-programs.mjs";
import type { Walk, Walked } from "./walk.ts";

export class SmallSystem {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "headrace-system-")));
  readonly #before: Set<string>;

  /** `archives`: what it begins with, the lowest first. */
  constructor(archives: readonly string[] = [smallDebian]) {
    for (const archive of archives) this.run(["tar", "-xf", archive, "-C", this.root]);
    // Its users other than root are to find their way in it.
    chmodSync(this.root, 0o755);
    this.#before = new Set(this.#paths());
  }

  /** Runs a command of this machine; throws what it said where it fails. */
  run(command: readonly string[]): string {
    const { stdout, stderr, exitCode } = Bun.spawnSync([...command], { stdin: "ignore" });
    if (exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${exitCode}: ${stderr}${stdout}`);
    return stdout.toString();
  }

  /** Runs a command of the system in it. */
  inside(command: readonly string[]): string {
    return this.run(this.commandInside(command));
  }

  /** How a command of the system is started from here. Bun ends at once where there is no /proc. */
  commandInside(command: readonly string[]): string[] {
    const namespaces = ["unshare", "--mount", "--pid", "--fork", `--mount-proc=${join(this.root, "proc")}`];
    const environment = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"];
    return [...namespaces, "chroot", this.root, ...environment, ...command];
  }

  /** Starts Headrace in it twice, without a network. */
  async walk(walk: Omit<Walk, "system">): Promise<Walked> {
    const program = join(import.meta.dir, "walk.ts");
    const within = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"];
    const reported = JSON.stringify({ system: this.root, ...walk } satisfies Walk);
    const child = Bun.spawn([...within, process.execPath, program, reported], { stdout: "pipe", stderr: "pipe" });
    const [output, complaint] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (child.exitCode !== 0) throw new Error(`The walk ended with ${child.exitCode}: ${complaint}`);
    return JSON.parse(output.trim().split("\n").at(-1) ?? "");
  }

  /** What is in it now and was not at the beginning, without what is in a directory that is new itself. */
  added(): string[] {
    const added = this.#paths().filter((path) => !this.#before.has(path));
    const directories = new Set(added);
    return added.filter((path) => !directories.has(path.slice(0, path.lastIndexOf("/"))));
  }

  #paths(): string[] {
    return this.run(["find", this.root, "-mindepth", "1", "-printf", "%P\n"]).trimEnd().split("\n").sort();
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
