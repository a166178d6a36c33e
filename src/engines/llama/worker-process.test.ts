// The process of a model starts again, whatever became of the temporary directory of the process before it.
import { expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { silentLog } from "../../../tests/support/data-directory.ts";
import { demoModel } from "../../../tests/support/llama/worker-process.ts";
import { WorkerProcess } from "./worker-process.ts";

test("loads an unloaded model again after its temporary directory was deleted", async () => {
  const size = { context: 256, parallel: 1, threads: 1, most: undefined };
  const options = { modelId: "tiny", modelPath: demoModel, ...size, gpu: false, libraryPath: undefined } as const;
  const worker = new WorkerProcess(
    options,
    silentLog,
    () => {},
    () => {},
  );
  const { signal } = new AbortController();
  const first = await worker.ready(signal);
  await worker.stop();
  rmSync(dirname(first.socket), { recursive: true, force: true });
  const second = await worker.ready(signal);
  expect((await fetch("http://engine/health", { unix: second.socket })).status).toBe(200);
  await worker.close();
  expect(existsSync(dirname(second.socket))).toBe(false);
});
