// The launcher: it becomes the server where its runtime can do that, waits for it elsewhere, and leaves none behind.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { makeWorkspace, startProgram, type Workspace } from "../support/program.ts";

const root = join(import.meta.dir, "..", "..");

/** A search path on which `node` is a runtime that can become another program, as Node itself from 22.15 on. */
function pathWithExecve(workspace: Workspace): string {
  symlinkSync(process.execPath, join(workspace.directory, "node"));
  return `${workspace.directory}:${process.env["PATH"]}`;
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8");
}

function childrenOf(parent: number): number[] {
  const isChild = (pid: string) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === parent;
    } catch {
      return false;
    }
  };
  return readdirSync("/proc").filter(isChild).map(Number);
}

test("replaces the launcher's process by the server, which shuts down on a signal", async () => {
  await using workspace = makeWorkspace();
  await using server = startProgram(workspace, ["serve", "--no-demo"], { PATH: pathWithExecve(workspace) });
  await server.says(/ listening /);
  expect(commandOf(server.pid)).toContain("src/main.ts\0serve");
  expect(childrenOf(server.pid)).toEqual([]);
  server.signal("SIGTERM");
  expect(await server.exitCode()).toBe(0);
  expect(server.stdout()).toMatch(/stopping signal=SIGTERM/);
});

test("stops a server started by npm together with npm, though the launcher is gone", async () => {
  await using workspace = makeWorkspace();
  const npm = realpathSync(Bun.which("npm") ?? "");
  const child = Bun.spawn(
    [Bun.which("node") ?? "", npm, "start", "--", "--port", "0", "--no-demo", "--no-discover-local"],
    {
      cwd: root,
      env: { PATH: pathWithExecve(workspace), HOME: workspace.directory, HEADRACE_DATA_DIR: workspace.dataDir },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  let said = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stdout) said += decoder.decode(bytes, { stream: true });
  })();
  await until(() => said.includes("listening"), "the server listens", 30_000);
  child.kill("SIGTERM");
  await until(() => /stopping signal=launcher_gone[\s\S]* stopped/.test(said), "the server ended");
  await Promise.all([child.exited, reading]);
});
