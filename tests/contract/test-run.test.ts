// `npm test` when Bun crashes, or a test fails: nothing goes untested, and what crashes or fails again fails the run.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const root = join(import.meta.dir, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "crashed-bun-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("reruns files that a Bun crash interrupted", async () => {
  const files = filesOf("once", `!existsSync(mark)`);
  const { output, code } = await npmTest(files);
  expect(output).toContain("worker crashed: SIGBUS");
  expect(output).toContain("Bun itself crashed; the files that it lost were run again");
  expect(output).toEndWith("\n6 passed, 0 failed\n");
  expect(code).toBe(0);
});

test("fails a file that always crashes Bun", async () => {
  const { output, code } = await npmTest(filesOf("always", "true"));
  expect(output).toMatch(/\n\d passed, [1-9] failed\n$/);
  expect(code).toBe(1);
});

test("does not rerun a file ended by another signal", async () => {
  const { output, code } = await npmTest(filesOf("ended", "true", "SIGTERM"));
  expect(output).toContain("What failed:");
  expect(output).toEndWith("\n5 passed, 1 failed\n");
  expect(code).toBe(1);
});

test("names a file that fails beside others and passes alone", async () => {
  const { output, code } = await npmTest(filesOf("unsteady", `!existsSync(mark)`, "none"));
  expect(output).toContain("Failed beside other files and passed alone");
  expect(output).toMatch(/alone \(.*\):\n\S*file-1\.test\.ts\n/);
  expect(output).toEndWith("\n6 passed, 0 failed\n");
  expect(code).toBe(0);
});

test("fails a file that also fails alone", async () => {
  const { output, code } = await npmTest(filesOf("wrong", "true", "none"));
  expect(output).toContain("What failed:");
  expect(output).toEndWith("\n5 passed, 1 failed\n");
  expect(code).toBe(1);
});

/** Six files, two at a time, the first of which ends its process where `condition` holds, or fails. */
function filesOf(name: string, condition: string, signal: "SIGBUS" | "SIGTERM" | "none" = "SIGBUS"): string {
  const own = mkdtempSync(join(folder, `${name}-`));
  const mark = JSON.stringify(join(own, "mark"));
  for (let number = 1; number <= 6; number++) {
    const fault = signal === "none" ? `throw new Error("wrong")` : `process.kill(process.pid, "${signal}")`;
    const ends = number === 1 ? `if (${condition}) { writeFileSync(mark, ""); ${fault}; }` : "";
    const text = `import { test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
const mark = ${mark};
test("${number}", async () => { ${ends} await Bun.sleep(20); });
`;
    writeFileSync(join(own, `file-${number}.test.ts`), text);
  }
  return relative(root, own);
}

async function npmTest(files: string): Promise<{ output: string; code: number }> {
  const command = ["node", "scripts/test.mjs", "--parallel=2", "--no-isolate", files];
  const program = Bun.spawn(command, { cwd: root, stdout: "pipe", stderr: "pipe" });
  const [out, errors, code] = await Promise.all([
    new Response(program.stdout).text(),
    new Response(program.stderr).text(),
    program.exited,
  ]);
  return { output: errors + out, code };
}
