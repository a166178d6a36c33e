// Whatever kills the server: a response whose client has heard its end is kept, and can be gone on from.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openaiClient } from "../support/clients.ts";
import { saidIn } from "../support/response-script.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const model = "upstream-model";
const directory = mkdtempSync(join(tmpdir(), "headrace-response-kill-"));
const config = join(directory, "headrace.yaml");
const dataDir = join(directory, "data");
let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream();
  writeFileSync(config, upstreamYaml(upstream));
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

test("what clients were answered while requests came from all sides is there after kill -9", async () => {
  const answered: string[] = [];
  {
    await using server = await startServerProcess({ config, dataDir });
    const client = openaiClient({ url: server.url, key: firstKey() });
    const ask = async (n: number) => {
      for (let turn = 0; ; turn++) {
        const asked = { model, input: `Turn ${turn} of ${n}` };
        if (turn % 2 === 0) answered.push((await client.responses.create(asked)).id);
        else {
          for await (const event of await client.responses.create({ ...asked, stream: true })) {
            if (event.type === "response.completed") answered.push(event.response.id);
          }
        }
        // The last of them has only just heard its end.
        if (answered.length >= 150) server.process.kill("SIGKILL");
      }
    };
    await Promise.allSettled(Array.from({ length: 8 }, (_, n) => ask(n)));
    await server.process.exited;
  }
  expect(answered.length).toBeGreaterThanOrEqual(150);
  await using server = await startServerProcess({ config, dataDir });
  const client = openaiClient({ url: server.url, key: firstKey() });
  for (const id of answered) expect((await client.responses.retrieve(id)).status).toBe("completed");
  const previous = answered.at(-1) ?? "";
  await client.responses.create({ model, input: "Go on", previous_response_id: previous });
  const said = saidIn(upstream.requests.at(-1) ?? { body: {} });
  expect(said).toMatchObject([expect.stringMatching(/^user: Turn/), "assistant: Hello world", "user: Go on"]);
}, 60_000);

function firstKey(): string {
  return (JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")) as { api_key: string }).api_key;
}
