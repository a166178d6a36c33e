// Each npm that a promised Node brings takes the lock file, and `npm start` in a bare Debian leads to a streamed answer.
import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debianWithNpm, npmsFolder } from "../../scripts/test-programs.mjs";
import { dependencies } from "../programs/npms/package.json" with { type: "json" };
import { putClone, putNode20 } from "./forms.ts";
import { SmallSystem } from "./small-system.ts";

// Each of two starts installs 340 MB and builds the dashboard.
setDefaultTimeout(300_000);

const root = join(import.meta.dir, "..", "..");

test.each(Object.keys(dependencies))("finds package.json and the lock file in sync with %s", (name) => {
  const clone = mkdtempSync(join(tmpdir(), "headrace-npm-"));
  try {
    for (const file of ["package.json", "package-lock.json"]) cpSync(join(root, file), join(clone, file));
    const npm = join(npmsFolder, "node_modules", name, "bin", "npm-cli.js");
    // What is in sync needs nothing of a registry.
    const options = ["--dry-run", "--ignore-scripts", "--no-audit", "--no-fund", "--offline", "--loglevel=error"];
    const { exitCode, stderr } = Bun.spawnSync(["node", npm, "ci", ...options], { cwd: clone });
    expect([exitCode, `${stderr}`.trim()]).toEqual([0, ""]);
  } finally {
    rmSync(clone, { recursive: true });
  }
});

async function expectClonesStart(system: SmallSystem, npm: string): Promise<void> {
  expect(system.inside(["npm", "--version"]).trim()).toBe(npm);
  const { answer, keptKey, left } = await system.walk(putClone(system));
  expect({ answer, keptKey, left }).toEqual({
    answer: expect.stringContaining("tiny demo model"),
    keptKey: true,
    left: 0,
  });
  const backEnds = system.run(["ls", join(system.root, "root/headrace/node_modules/@node-llama-cpp")]).trim();
  expect(backEnds).toBe(`linux-${process.arch}`);
}

test("streams an answer after npm start on bare Debian 12 with Node 20 and its npm 10.8", async () => {
  using system = new SmallSystem();
  putNode20(system);
  await expectClonesStart(system, "10.8.2");
});

test("streams an answer after npm start on bare Debian 13 with its own Node and npm 9.2", async () => {
  using system = new SmallSystem([debianWithNpm]);
  await expectClonesStart(system, "9.2.0");
});
