// A shell in which blocks of one document run one after the other, with the program itself behind `headrace` and `npx headrace`.
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./blocks.ts";

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

const kept = "state";
/** Errors of curl are errors of the block. */
const prelude = `set -e -o pipefail
curl() { command curl --fail-with-body -sS "$@"; }
[ ! -f ./${kept} ] || . ./${kept}
set -a
`;

export class Shell {
  readonly #home: string;
  readonly #env: Record<string, string>;

  /** `home`: a folder of its own, which is the person's home and where blocks run; `dataDir`: the data of the server. */
  constructor(home: string, dataDir: string, env: Record<string, string>) {
    this.#home = home;
    const bin = join(home, "bin");
    mkdirSync(bin, { recursive: true });
    const headrace = `exec node '${join(root, "bin/headrace.mjs")}' "$@"`;
    this.#program(join(bin, "headrace"), headrace);
    this.#program(join(bin, "npx"), `[ "$1" = headrace ] || exit 127\nshift\n${headrace}`);
    mkdirSync(join(home, ".local/share"), { recursive: true });
    if (!existsSync(join(home, ".local/share/headrace"))) symlinkSync(dataDir, join(home, ".local/share/headrace"));
    this.#env = { PATH: `${bin}:${process.env["PATH"]}`, HOME: home, LANG: "C.UTF-8", ...env };
  }

  /** What a block before has set is there. */
  async run(text: string, more: Record<string, string> = {}): Promise<Outcome> {
    // What is set for this block counts more than what a block before has left.
    const own = Object.entries(more).map(([name, value]) => `${name}='${value}'\n`);
    const script = `${prelude}${own.join("")}${text}\n{ export -p; declare -f admin || true; } > ./${kept}\n`;
    const child = Bun.spawn(["bash", "-c", script], {
      ...{ cwd: this.#home, env: this.#env, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { code, stdout, stderr };
  }

  /** The value of a variable that a block has set. */
  variable(name: string): string {
    const line = new RegExp(`^declare -x ${name}="(.*)"$`, "m").exec(readFileSync(join(this.#home, kept), "utf8"));
    if (line?.[1] === undefined) throw new Error(`No block before has set ${name}.`);
    return line[1];
  }

  #program(path: string, text: string): void {
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
  }
}
