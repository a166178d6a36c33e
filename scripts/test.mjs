// `npm test`: installs what the tests need, runs them all, or those named, and ends with a line that counts them.
// `npm run test:long`: the long forms of the tests that have one, in tests/faults, tests/hostile, tests/fuzz,
// tests/install, tests/upgrades and tests/e2e/agents. `npm test -- --renew-timings` writes what each file took to
// tests/timings.json, by which the next runs begin with what takes longest.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  bunEnvironment,
  ensureDashboard,
  ensureDebianPackages,
  ensureDependencies,
  ensureGuides,
  root,
} from "./setup.mjs";
import { needsOf } from "./test-needs.mjs";
import { ensureDeployTools, ensureNpms, ensureSmallDebians, ensureTestPrograms } from "./test-programs.mjs";
import { TestRun } from "./test-run.mjs";

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
  ...["memory-slope", "notification-storm", "overload", "soak"].map(fault),
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
          [...atATime(4), ...timings, ...waiting],
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

const tests = new TestRun(env);
for (const args of [...runs, ...withWorkers]) {
  await tests.run(args, withWorkers.includes(args) ? { TEST_WORKERS: "2" } : {});
}
const { total, failures, crashes, unsteady } = tests;
const tell = (heading, lines) => {
  if (lines.length > 0) console.log(`\n${heading}\n${lines.join("\n")}`);
};
// Told again at the end: what failed early is far up by then, and where only the end of a log is kept, gone.
tell("What failed:", failures);
tell("Bun itself crashed; the files that it lost were run again:", crashes);
tell("Failed beside other files and passed alone (a fault of the test or of the program, to be mended):", unsteady);
console.log(`\n${total.pass} passed, ${total.fail} failed${total.skip > 0 ? `, ${total.skip} skipped` : ""}`);
process.exit(tests.isGood && total.fail === 0 ? 0 : 1);
