// The workflow for other systems: as far as it can be run on this one, it does what it says.
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import packageJson from "../../package.json" with { type: "json" };
import { freePort } from "../support/nginx-site.ts";

const root = join(import.meta.dir, "../..");
const text = readFileSync(join(root, ".github/workflows/platforms.yml"), "utf8");

interface Step {
  run?: string;
}
const { jobs } = parse(text) as { jobs: Record<string, { steps: Step[] }> };
const steps = Object.values(jobs).flatMap((job) => job.steps);

const directory = mkdtempSync(join(tmpdir(), "headrace-workflow-"));
afterAll(() => rmSync(directory, { recursive: true }));

test("names only existing files and commands in the workflow", () => {
  const runs = steps.map(({ run = "" }) => run).join("\n");
  const paths = [...runs.matchAll(/\b(?:bin|scripts|src)\/[\w./-]+/g)].map(([path]) => path);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  const commands = [...runs.matchAll(/npm run (\w+)/g)].map(([, command = ""]) => command);
  expect(commands.filter((command) => !(command in packageJson.scripts))).toEqual([]);
});

test("streams a demo answer in the workflow's first start, and leaves no process", async () => {
  expect(steps.filter(({ run }) => run === "scripts/first-start.sh").length).toBe(Object.keys(jobs).length);
  for (const name of ["bin", "scripts", "src", "models", "node_modules", "package.json", "dist"])
    symlinkSync(join(root, name), join(directory, name));
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    HEADRACE_DATA_DIR: join(directory, "data"),
    HEADRACE_PORT: String(await freePort()),
  };
  const child = Bun.spawn(["scripts/first-start.sh"], { cwd: directory, env, stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(await child.exited, stdout + stderr).toBe(0);
  expect(stdout).toContain("data: [DONE]");
}, 60_000);
