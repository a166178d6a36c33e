// What the doctor says of model files that are given to a program which is not here.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config/config.ts";
import { engineChecks } from "./engine.ts";
import type { Subject } from "./subject.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headrace-doctor-engine-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function findings() {
  const file = join(folder, "headrace.yaml");
  writeFileSync(file, "engine: { files: [{ model: m, engine: llama-server }] }");
  const config = await loadConfig({ flags: { config: file, dataDir: folder }, env: {}, cwd: folder });
  const subject: Pick<Subject, "config" | "env"> = { config, env: { PATH: folder } };
  return await engineChecks(subject)
    .find(({ name }) => name === "llama-server")
    ?.run(new AbortController().signal);
}

test("finds llama-server on the PATH, and fails without it if a file needs it", async () => {
  expect(await findings()).toMatchObject({ level: "failure", found: expect.stringContaining("is not on the PATH") });
  const program = join(folder, "llama-server");
  writeFileSync(program, "#!/bin/sh\n");
  chmodSync(program, 0o755);
  expect(await findings()).toMatchObject({ level: "ok", found: `${program} runs 1 file` });
});
