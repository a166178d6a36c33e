// `headrace batches` against a real server.
import { expect, test } from "bun:test";
import { toFile } from "openai";
import { runCommand } from "../fixtures/command-line.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

test("lists, shows with errors, and cancels batches from the command line", async () => {
  await using upstream = await startUpstream(() => new Promise(() => {}));
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream), batchTimes: { pollMs: 50 } });
  const client = openaiClient(server);
  const run = (...args: string[]) => {
    return runCommand(["batches", ...args], {
      env: { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.key },
    });
  };
  expect((await run("list")).stderr).toContain("There is no batch.");
  const begin = async (text: string) => {
    const file = await client.files.create({ file: await toFile(Buffer.from(text), "a"), purpose: "batch" });
    const asked = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" } as const;
    return (await client.batches.create(asked)).id;
  };
  const wrong = await begin("{}\n");
  const body = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };
  const good = await begin(JSON.stringify({ custom_id: "a", method: "POST", url: "/v1/chat/completions", body }));
  await until(() => upstream.requests.length === 1, "its request is under way");

  const listed = (await run("list")).stdout;
  expect(listed).toMatch(new RegExp(`${good} +in progress +0 of 1 +0 +/v1/chat/completions +upstream-model`));
  expect(listed).toMatch(new RegExp(`${wrong} +failed`));
  expect(JSON.parse((await run("list", "--json")).stdout).map(({ id }: { id: string }) => id)).toContain(good);
  expect((await run("show", wrong)).stdout).toContain("Line 1: custom_id: must be a text of 1 to 256 characters");
  expect((await run("show", good)).stdout).toMatch(/Requests +0 of 1, 0 failed/);
  expect((await run("cancel", good)).code).toBe(2);
  expect((await run("cancel", good, "--yes")).stdout).toContain(`The batch ${good} is cancel`);
  await until(async () => (await run("show", good)).stdout.includes("cancelled"), "it is cancelled");
  const none = await run("show", "batch_none");
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("There is no batch `batch_none`")]);
});
