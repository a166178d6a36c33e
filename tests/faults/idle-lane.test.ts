// Live requests beside a batch that fills every idle place: they take as long as without it.
import { expect, test } from "bun:test";
import { toFile } from "openai";
import { bookedUsage } from "../support/booked-usage.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { json, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const clients = 4;
const requestsOfEach = long ? 1_000 : 100;
const answerMs = 20;
/** Much longer than a moment on a busy machine. */
const lineMs = 500;
/** The promise is about a machine that does nothing else; beside other tests only what the gateway adds is looked at. */
const maxTimes = 1.1;
const maxQueueMs = long ? 10 : 150;

test(
  "lets live requests pass batch lines that fill the idle slots",
  async () => {
    await using upstream = await startUpstream(async ({ body }, res) => {
      const isLine = JSON.stringify(body).includes("of a batch");
      await Bun.sleep(isLine ? lineMs : answerMs);
      if (res.destroyed) return;
      json(res, 200, {
        ...{ id: "c", object: "chat.completion", created: 1, model },
        choices: [{ index: 0, message: { role: "assistant", content: "word" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      });
    });
    const yaml = upstreamYaml(upstream).replace("name: up", "name: up, max_concurrency: 8");
    await using server = await startHeadrace({ yaml, batchTimes: { pollMs: 50 } });
    const asked = (content: string) => ({ model, messages: [{ role: "user", content }] });
    const live = async (): Promise<number> => {
      const times: number[] = [];
      const one = async () => {
        for (let n = 0; n < requestsOfEach; n++) {
          const startedMs = performance.now();
          const response = await server.request("/v1/chat/completions", { body: asked("live") });
          await response.text();
          expect(response.status).toBe(200);
          times.push(performance.now() - startedMs);
        }
      };
      await Promise.all(Array.from({ length: clients }, one));
      times.sort((a, b) => a - b);
      return times[Math.floor(times.length * 0.99)] ?? 0;
    };
    await live();
    const alone = await live();
    const lines = Array.from({ length: 20_000 }, (_, n) => {
      return JSON.stringify({
        custom_id: String(n),
        method: "POST",
        url: "/v1/chat/completions",
        body: asked("of a batch"),
      });
    });
    const client = openaiClient(server);
    const file = await client.files.create({
      file: await toFile(Buffer.from(lines.join("\n")), "a"),
      purpose: "batch",
    });
    const { id } = await client.batches.create({
      ...{ input_file_id: file.id, completion_window: "24h", endpoint: "/v1/chat/completions" },
    });
    const done = async () => (await client.batches.retrieve(id)).request_counts?.completed ?? 0;
    await until(async () => (await done()) > 16, "the lane is full");
    const before = await done();
    const beside = await live();
    const answered = (await done()) - before;
    console.log(`p99 ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside ${answered} lines`);
    expect(answered).toBeGreaterThan(0);
    if (long) expect(beside).toBeLessThan(alone * maxTimes);
    await server.governance.ledger.flush();
    const waits = bookedUsage(server.dataDir)
      .slice(-clients * requestsOfEach)
      .map(({ queue_ms: ms }) => ms);
    waits.sort((a, b) => a - b);
    // Who waited for a line to end would have waited for most of its time.
    expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(maxQueueMs);
    await client.batches.cancel(id);
  },
  long ? 300_000 : 60_000,
);
