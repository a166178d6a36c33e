// A power cut is not tried out: what was on the disk by then is told by the program's own system calls, as strace saw them.
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeWorkspace, startProgram } from "../support/program.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";
import { deletedBeforeSync, lostByPowerCut, tracing } from "../support/traced-disk.ts";

// hardening: F23
test("writes secret, key and database to the disk before the first start shows its key", async () => {
  await using workspace = makeWorkspace();
  const { directory, dataDir } = workspace;
  const prefix = join(directory, "trace");
  await using program = startProgram(workspace, ["serve", "--no-demo"], {}, tracing(prefix));
  await program.says(/sk_dev_hr_/);
  const lost = lostByPowerCut(prefix, dataDir, directory);
  const promised = ["", "secret", "credentials.json", "headrace.db", "headrace.db-wal", "spool"];
  expect(promised.map((name) => [name, lost.get(join(dataDir, name)) ?? "on the disk"])).toEqual(
    promised.map((name) => [name, "on the disk"]),
  );
});

test("deletes a killed server's spool only after its usage is on the database's disk", async () => {
  await using workspace = makeWorkspace();
  await using upstream = await startUpstream();
  const { directory, dataDir } = workspace;
  const config = join(directory, "headrace.yaml");
  writeFileSync(config, upstreamYaml(upstream));
  await using killed = await startServerProcess({ dataDir, config });
  const key = String(JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")).api_key);
  const chat = () =>
    fetch(`${killed.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "x" }] }),
    }).then((response) => response.text());
  await Promise.all(Array.from({ length: 20 }, chat));
  killed.process.kill("SIGKILL");
  await killed.process.exited;
  const prefix = join(directory, "trace");
  await using program = startProgram(workspace, ["serve", "--no-demo"], {}, tracing(prefix));
  await program.says(/Base URL/);
  const log = join(dataDir, "headrace.db-wal");
  const isSegment = (path: string) => path.startsWith(join(dataDir, "spool")) && !path.endsWith("probe");
  const deleted = deletedBeforeSync(prefix, log, isSegment);
  expect(deleted.length).toBeGreaterThan(0);
  expect(deleted).toEqual(deleted.map(() => false));
});
