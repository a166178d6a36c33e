// One run of `bun test`: its counts, the files that Bun lost, and the tests that failed.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { bunExecutable, root } from "./setup.mjs";

/** Matches the line by which Bun names a file whose process died of a fault in Bun, or that it gave up after such a death. */
const lostFile = /^✗ (.+) \((?:(worker crashed: SIG(?:ABRT|BUS|FPE|ILL|SEGV|TRAP))|aborted: .+)\)$/;
/** More failed files than these are no accident, and are not run again. */
const maxFilesRunAgain = 5;

export class TestRun {
  /** Bun's own counts, over all files. */
  total = { pass: 0, fail: 0, skip: 0 };
  /** What Bun printed about each test that failed, in lines. */
  failures = [];
  /** What Bun printed before it crashed, in lines. */
  crashes = [];
  /** Files with tests that failed beside other files and passed alone. */
  unsteady = [];
  isGood = true;
  #env;

  /** @param {Record<string, string>} env */
  constructor(env) {
    this.#env = env;
  }

  /**
   * Runs what `args` of `bun test` name. Files that a crash of Bun has taken along are run again, twice at most. Files with
   * tests that failed beside others are run once more, alone: a deadline can pass because of what runs beside a file. `own`:
   * variables of the environment for these tests.
   * @param {readonly string[]} args
   * @param {Record<string, string>} own
   */
  async run(args, own) {
    const flags = args.filter((argument) => argument.startsWith("--parallel=") || argument === "--no-isolate");
    const failed = new Map();
    let errors = 0;
    let last = await this.#bun(args, own);
    for (let round = 1; ; round++) {
      this.#count(last.counts);
      errors += last.errors;
      for (const [file, names] of last.failed) failed.set(file, names);
      if (last.lost.length === 0 || round === 3) break;
      // Bun counts each file that it has lost as one failure.
      this.total.fail -= last.lost.length;
      last = await this.#bun([...flags, ...last.lost.map((path) => `./${path}`)], own);
    }
    const told = [...failed.values()].reduce((sum, count) => sum + count, 0);
    const areFew = failed.size > 0 && failed.size <= maxFilesRunAgain;
    // An error between two tests belongs to no file, so that no file can be run again for it.
    const canBeRunAgain = areFew && args.length > 1 && last.lost.length === 0 && errors === 0;
    if (!canBeRunAgain || !(await this.#passAlone([...failed.keys()], own))) {
      this.isGood &&= last.isGood && failed.size === 0;
      return;
    }
    this.unsteady.push(...failed.keys());
    this.total.pass += told;
    this.total.fail -= told;
  }

  async #passAlone(files, own) {
    for (const file of files) {
      const { isGood } = await this.#bun([`./${file}`], own);
      if (!isGood) return false;
    }
    return true;
  }

  #count(counts) {
    for (const word of Object.keys(this.total)) this.total[word] += counts[word];
  }

  #bun(args, own) {
    return new Promise((resolve) => {
      const child = spawn(bunExecutable(), ["test", "--timeout", "60000", ...args], {
        cwd: root,
        env: { ...this.#env, ...own },
        stdio: ["ignore", "inherit", "pipe"],
      });
      let tail = "";
      let ofThisTest = [];
      let file = "";
      let isToldAgain = false;
      const lost = new Set();
      const failed = new Map();
      child.stderr.on("data", (bytes) => {
        process.stderr.write(bytes);
        tail = (tail + bytes).slice(-4000);
      });
      createInterface({ input: child.stderr }).on("line", (line) => {
        // Bun's own list of names, at its end.
        isToldAgain ||= /^\d+ tests? failed:$/.test(line);
        if (isToldAgain) return;
        file = /^(\S.*\.test\.tsx?):$/.exec(line)?.[1] ?? file;
        ofThisTest.push(line);
        if (ofThisTest.length > 100) ofThisTest.shift();
        const [, path, isCrash] = lostFile.exec(line) ?? [];
        if (path) lost.add(path);
        if (isCrash) this.crashes.push(...ofThisTest.slice(-40));
        else if (line.startsWith("✗ ") && !path) this.failures.push(line);
        if (line.startsWith("(fail)")) {
          this.failures.push(`${file}:`, ...ofThisTest);
          failed.set(file, (failed.get(file) ?? 0) + 1);
        }
        if (/^\((pass|fail|skip|todo)\)/.test(line)) ofThisTest = [];
      });
      child.on("close", (code) => {
        const count = (word) => Number(new RegExp(`^\\s*(\\d+) ${word}$`, "m").exec(tail)?.[1] ?? 0);
        const errors = count("error") + count("errors");
        const counts = { pass: count("pass"), fail: count("fail"), skip: count("skip") };
        resolve({ isGood: code === 0 && counts.pass > 0, counts, errors, lost: [...lost], failed });
      });
    });
  }
}
