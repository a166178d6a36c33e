import { expect, test } from "bun:test";
import * as library from "node-llama-cpp";
import { demoModel } from "../../../../tests/support/llama/worker-process.ts";
import { chooseThreads } from "./threads.ts";

test("chooses a number of threads within its bounds in time", async () => {
  const llama = await library.getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: 4,
  });
  const model = await llama.loadModel({ modelPath: demoModel });
  const started = performance.now();
  expect([1, 2, 4]).toContain(await chooseThreads(model, 4));
  expect(performance.now() - started).toBeLessThan(10_000);
  expect(await chooseThreads(model, 1)).toBe(1);
  await model.dispose();
});
