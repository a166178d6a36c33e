// OpenAI's SDK for Python: its methods for files, uploads and batches work as they are.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeProgramHome, python } from "../../support/agents/agent-program.ts";
import { startHeadrace } from "../../support/headrace.ts";
import { json, startUpstream, upstreamYaml } from "../../support/scripted-upstream.ts";

const script = join(import.meta.dir, "..", "..", "programs", "batches.py");

test("lets the Python SDK upload, list, read and delete files, also in parts, and run a batch", async () => {
  await using upstream = await startUpstream(({ body }, res) => {
    const [asked] = body["messages"] as { content: string }[];
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: "upstream-model" },
      choices: [{ index: 0, message: { role: "assistant", content: `re: ${asked?.content}` }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    });
  });
  const yaml = upstreamYaml(
    upstream,
    "models: [{ id: chatter, deployments: [{ upstream: up, model: upstream-model }] }]\n",
  );
  await using server = await startHeadrace({ yaml, batchTimes: { pollMs: 50 } });
  await using home = makeProgramHome();
  const command = [python, script, `${server.url}/v1`, "chatter"];
  const { code, stdout, stderr } = await home.run(command, home.home, { OPENAI_API_KEY: server.key });
  if (code !== 0) throw new Error(`It ended with ${code}:\n${stdout}\n${stderr}`);
  expect(JSON.parse(stdout)).toEqual({
    file: ["lines.jsonl", true, "batch", "processed"],
    listed: [true],
    content: true,
    upload: ["completed", true],
    deleted: true,
    gone: 404,
    batch: ["completed", 3, "python"],
    answers: { "line-0": "re: question 0", "line-1": "re: question 1", "line-2": "re: question 2" },
    batches: [true],
  });
  expect(upstream.requests).toHaveLength(3);
});
