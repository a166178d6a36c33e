// What the real program holds when nobody asks it: much less than its start ran through.
import { expect, test } from "bun:test";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { makeWorkspace, startProgram } from "../support/program.ts";

test("returns a quarter of its memory once idle after the start, and serves on", async () => {
  await using workspace = makeWorkspace();
  // A runtime that can become another program: then there is one process alone.
  symlinkSync(process.execPath, join(workspace.directory, "node"));
  const path = `${workspace.directory}:${process.env["PATH"]}`;
  await using server = startProgram(workspace, ["serve", "--no-demo"], { PATH: path });
  const [, url] = await server.says(/ listening url=(\S+)/);
  const kilobytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]);
  await until(() => kilobytes("VmRSS") < 0.75 * kilobytes("VmHWM"), "memory is given back", 20_000);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect((await fetch(`${url}/v1/keys`)).status).toBe(401);
});
