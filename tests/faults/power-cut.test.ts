// A power cut is not tried out: what was on the disk by then is told by the program's own system calls, as strace saw them.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeWorkspace, startProgram } from "../support/program.ts";
import { lostByPowerCut, tracing } from "../support/traced-disk.ts";

// hardening: F23
test("by the time that a first start shows its key, secret, key and database are on the disk under their names", async () => {
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
