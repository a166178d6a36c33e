import { expect, test } from "bun:test";
import { demoModel } from "../../../../../tests/support/llama/worker-process.ts";
import { load } from "../load.ts";
import { type Runtime, writesText } from "../runtime.ts";
import { answerCompletion } from "./completion.ts";
import { Fields } from "./fields.ts";

/** Returns a runtime whose context is gone, as after a failure in native code that did not end the process. */
async function brokenRuntime(): Promise<{ runtime: Runtime; logged: string[]; givenUp: unknown[] }> {
  const logged: string[] = [];
  const givenUp: unknown[] = [];
  const settings = { socket: "unused", modelPath: demoModel, modelId: "tiny", parallel: 2, gpu: false } as const;
  const runtime = await load(settings, {
    log: (line) => logged.push(line),
    giveUp: (error) => givenUp.push(error),
  });
  if (!writesText(runtime)) throw new Error("the demo model writes text");
  await runtime.context.dispose();
  return { runtime, logged, givenUp };
}

test("sends one error event without [DONE] for a failure in a stream, and ends the worker", async () => {
  const { runtime, logged, givenUp } = await brokenRuntime();
  const fields = new Fields({ prompt: "Once upon a secret time", stream: true });
  const response = await answerCompletion(runtime, fields, new AbortController().signal);
  const error = { message: expect.any(String), type: "api_error", code: "internal_error" };
  const [event, ...rest] = (await response.text()).split("\n\n");
  expect(JSON.parse(event?.slice("data: ".length) ?? "")).toEqual({ error });
  expect(rest).toEqual([""]);
  expect(givenUp).toHaveLength(1);
  expect(logged).toHaveLength(1);
  expect(logged.join()).not.toContain("secret");
  await runtime.model.dispose();
});
