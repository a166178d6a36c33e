// `npm test`: installs what the tests need, runs them all, or those named, and ends with a line that counts them.
// `npm run test:long`: the long forms of the tests that have one, in tests/faults, tests/hostile, tests/fuzz,
// tests/install, tests/upgrades and tests/e2e/agents. `npm test -- --renew-timings` writes what each file took to
// tests/timings.json, by which the next runs begin with what takes longest.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  bunEnvironment,
  bunExecutable,
  ensureDashboard,
  ensureDebianPackages,
  ensureDependencies,
  ensureGuides,
  root,
} from "./setup.mjs";
import { needsOf } from "./test-needs.mjs";
import { ensureDeployTools, ensureNpms, ensureSmallDebians, ensureTestPrograms } from "./test-programs.mjs";

const long = process.argv.includes("--long");
const renewal = "--renew-timings";
const chosen = process.argv.slice(2).filter((argument) => argument !== "--long" && argument !== renewal);
const agents = join("tests", "e2e", "agents");
const deploy = join("tests", "deploy");
const install = join("tests", "install");
const hostile = (name) => join("tests", "hostile", `${name}.test.ts`);
const fault = (name) => join("tests", "faults", `${name}.test.ts`);
const e2e = (name) => join("tests", "e2e", `${name}.test.ts`);
const workerTests = [
  ...["limits", "hard-stop", "revocation", "shutdown", "lame-duck"].map(e2e),
  // Of all kinds of requests: a worker keeps nothing of those that it has handed over.
  ...["admin", "openai-sdk", "media", "response-socket", "files", "tools", "long-answers"].map(e2e),
  // What is read of a request before it is handed over, and how it is passed on.
  ...["bodies", "smuggling"].map(hostile),
  join("tests", "contract", "wire-format.test.ts"),
  ...["kill", "drain"].map(fault),
];
// These compare times and memory: they have the machine to themselves.
const measuring = [
  "bench",
  ...["bytes-in-memory", "cost-of-length", "hostile-load", "idle-streams", "large-bodies", "large-forms"].map(hostile),
  ...["line-ends", "many-requests", "regular-expressions", "slow-senders", "stalled-readers"].map(hostile),
  ...["memory-slope", "notice-storm", "overload", "soak"].map(fault),
];
// These mostly wait, for a browser, for other programs, for a disk, the others for servers: more files at a time than there
// are processors use the machine best. Units have deadlines of their own, of milliseconds: none of the others run beside them.
const waiting = [...["e2e", "browser", "upgrades"].map((name) => join("tests", name)), deploy, install];
const others = readdirSync(join(root, "tests"))
  .map((name) => join("tests", name))
  .filter((path) => !waiting.includes(path));
const atATime = (files) => [`--parallel=${files}`, "--no-isolate"];
// What takes longest begins first, so that no processor waits for it at the end.
const timings = [
  `--timings=${join("tests", "timings.json")}`,
  ...(process.argv.includes(renewal) ? ["--update-timings"] : []),
];
const runs =
  chosen.length > 0
    ? [chosen]
    : long
      ? [[...["faults", "hostile", "fuzz", "install", "upgrades"].map((name) => join("tests", name)), agents]]
      : [
          measuring,
          [...atATime(2), ...timings, "src"],
          [...atATime(3), ...timings, ...measuring.map((path) => `--path-ignore-patterns=${path}`), ...others],
          [...atATime(3), ...timings, ...waiting],
        ];
// What several processes of one server may do wrong, they are asked again by tests of one that serves alone.
const withWorkers = chosen.length > 0 || long ? [] : [[...atATime(2), ...workerTests]];
// Who runs one file installs and builds what that file needs, and nothing else.
ensureDependencies({ dev: true });
const needs = needsOf(chosen.length > 0 || !long ? chosen : runs.flat(), { long });
if (needs.dashboard) ensureDashboard();
if (needs.guides && !ensureGuides()) process.exit(1);
ensureDebianPackages(needs.debian);
if (needs.programs) ensureTestPrograms();
if (needs.deployTools) ensureDeployTools();
if (needs.smallDebians) ensureSmallDebians();
if (needs.npms) ensureNpms();
// The tests set what they need; what this shell has set for a Headrace of its own must not leak in.
const env = Object.fromEntries(Object.entries(bunEnvironment()).filter(([name]) => !name.startsWith("HEADRACE_")));
if (long) env["TEST_LONG"] = "1";

// How Bun names a file whose process died of a fault in Bun, or that it gave up because of such a death.
const lostFile = /^✗ (.+) \((?:(worker crashed: SIG(?:ABRT|BUS|FPE|ILL|SEGV|TRAP))|aborted: .+)\)$/;
const total = { pass: 0, fail: 0, skip: 0 };
const failures = [];
const crashes = [];
let isGood = true;
for (const paths of [...runs, ...withWorkers]) {
  await runAll(paths, withWorkers.includes(paths) ? { TEST_WORKERS: "2" } : {});
}
// Told again at the end: what failed early is far up by then, and where only the end of a log is kept, gone.
if (failures.length > 0) console.log(`\nWhat failed:\n${failures.join("\n")}`);
if (crashes.length > 0)
  console.log(`\nBun itself crashed; the files that it lost were run again:\n${crashes.join("\n")}`);
console.log(`\n${total.pass} passed, ${total.fail} failed${total.skip > 0 ? `, ${total.skip} skipped` : ""}`);
process.exit(isGood && total.fail === 0 ? 0 : 1);

/** Runs what `paths` names. Files that a crash of Bun has taken along are run again, twice at most. */
async function runAll(paths, own) {
  const flags = paths.filter((argument) => argument.startsWith("--parallel=") || argument === "--no-isolate");
  let lost = [];
  for (let round = 0; round < 3; round++) {
    const files = round === 0 ? paths : [...flags, ...lost.map((path) => `./${path}`)];
    const last = await run(["test", "--timeout", "60000", ...files], own);
    lost = last.lost;
    if (lost.length === 0 || round === 2) {
      isGood &&= last.isGood;
      return;
    }
    // Bun counts each file that it has lost as one failure.
    total.fail -= lost.length;
  }
}

/**
 * Runs Bun and adds to `total`. What it says of each test that fails is kept in `failures`. `lost` has the files whose
 * tests Bun did not run to their end because one of its processes crashed by a fault of Bun's own: with the first such
 * crash it gives up all files that wait (https://github.com/oven-sh/bun/issues/41357).
 */
function run(args, own) {
  return new Promise((resolve) => {
    const child = spawn(bunExecutable(), args, {
      cwd: root,
      env: { ...env, ...own },
      stdio: ["ignore", "inherit", "pipe"],
    });
    let tail = "";
    let ofThisTest = [];
    let isToldAgain = false;
    const lost = new Set();
    child.stderr.on("data", (bytes) => {
      process.stderr.write(bytes);
      tail = (tail + bytes).slice(-4000);
    });
    createInterface({ input: child.stderr }).on("line", (line) => {
      // Bun's own list of names, at its end.
      isToldAgain ||= /^\d+ tests? failed:$/.test(line);
      ofThisTest.push(line);
      if (ofThisTest.length > 100) ofThisTest.shift();
      const [, path, isCrash] = lostFile.exec(line) ?? [];
      if (path) lost.add(path);
      if (isCrash) crashes.push(...ofThisTest.slice(-40));
      else if (line.startsWith("✗ ") && !path) failures.push(line);
      if (line.startsWith("(fail)") && !isToldAgain) failures.push(...ofThisTest);
      if (/^\((pass|fail|skip|todo)\)/.test(line)) ofThisTest = [];
    });
    child.on("close", (code) => {
      const count = (word) => Number(new RegExp(`^\\s*(\\d+) ${word}$`, "m").exec(tail)?.[1] ?? 0);
      for (const word of Object.keys(total)) total[word] += count(word);
      resolve({ isGood: code === 0 && count("pass") > 0, lost: [...lost] });
    });
  });
}
