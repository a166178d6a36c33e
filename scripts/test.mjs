// `npm test`: installs what the tests need, runs them all, or those named, and ends with a line that counts them.
// `npm run test:long`: the long forms of the tests in tests/faults.
import { spawn } from "node:child_process";
import {
  bunEnvironment,
  bunExecutable,
  ensureDashboard,
  ensureDebianPackages,
  ensureDependencies,
  root,
} from "./setup.mjs";

ensureDependencies({ dev: true });
ensureDashboard();
ensureDebianPackages({
  curl: "curl",
  openssl: "openssl",
  chromium: "chromium",
  ip: "iproute2",
  "redis-server": "redis-server",
  // Debian keeps it off the PATH.
  "/usr/lib/postgresql/*/bin/postgres postgres": "postgresql",
});

const long = process.argv.includes("--long");
const chosen = process.argv.slice(2).filter((argument) => argument !== "--long");
const all = long ? ["tests/faults"] : ["src", "tests", "bench"];
const args = ["test", "--timeout", "60000", ...(chosen.length > 0 ? chosen : all)];
// The tests set what they need; what this shell has set for a Headrace of its own must not leak in.
const env = Object.fromEntries(Object.entries(bunEnvironment()).filter(([name]) => !name.startsWith("HEADRACE_")));
if (long) env["TEST_LONG"] = "1";
const child = spawn(bunExecutable(), args, { cwd: root, env, stdio: ["ignore", "inherit", "pipe"] });
let tail = "";
child.stderr.on("data", (bytes) => {
  process.stderr.write(bytes);
  tail = (tail + bytes).slice(-4000);
});
child.on("close", (code) => {
  const count = (word) => Number(new RegExp(`^\\s*(\\d+) ${word}$`, "m").exec(tail)?.[1] ?? 0);
  const [passed, failed, skipped] = [count("pass"), count("fail"), count("skip")];
  console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  process.exit(code === 0 && passed > 0 ? 0 : 1);
});
