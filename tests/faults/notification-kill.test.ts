// Whatever kills the server in the middle of deliveries: each event arrives, with the `webhook-id` that it had before.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { until } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-notice-kill-"));
const config = join(directory, "headrace.yaml");
const dataDir = join(directory, "data");
let upstream: ScriptedUpstream;
let receiver: WebhookReceiver;

beforeAll(async () => {
  [upstream, receiver] = await Promise.all([startUpstream(), startWebhookReceiver()]);
  writeFileSync(config, upstreamYaml(upstream, "webhook_loopback: true\n"));
});
afterAll(async () => {
  await Promise.all([upstream[Symbol.asyncDispose](), receiver[Symbol.asyncDispose]()]);
  rmSync(directory, { recursive: true, force: true });
});

async function call(url: string, method: string, path: string, body?: unknown) {
  const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
  const response = await fetch(url + path, {
    ...{ method, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as { id: string; secret: string; event_id: string };
}

// hardening: F37
test("delivers each event under its promised id after kill -9 during deliveries", async () => {
  const promised: string[] = [];
  let webhook = { id: "", secret: "" };
  for (let round = 0; round < 3; round++) {
    await using server = await startServerProcess({ config, dataDir });
    if (round === 0) webhook = await call(server.url, "POST", "/v1/webhooks", { url: receiver.url });
    // Some of them are answered, some hang, and some have not begun.
    receiver.answer(200);
    const before = receiver.received.length;
    for (let asked = 0; asked < 12; asked++) {
      promised.push((await call(server.url, "POST", `/v1/webhooks/${webhook.id}/test`)).event_id);
      if (asked === 6) receiver.answer(undefined);
    }
    await until(() => receiver.received.length > before + 5, "some have come");
    server.process.kill("SIGKILL");
    await server.process.exited;
  }
  receiver.answer(200);
  // The claims of the dead hold for a minute, which has passed for all of them.
  const db = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db") });
  await db`UPDATE notice_deliveries SET claimed_until = 0, due_at = 0`;
  await db.close();
  await using server = await startServerProcess({ config, dataDir });
  await until(
    async () => {
      const answer = await call(server.url, "GET", `/v1/webhooks/${webhook.id}/deliveries?limit=100`);
      const { data } = answer as unknown as { data: { state: string }[] };
      return data.length === promised.length && data.every(({ state }) => state === "delivered");
    },
    "all are delivered",
    30_000,
  );
  expect(new Set(promised).size).toBe(36);
  expect([...new Set(receiver.received.map(({ id }) => id))].sort()).toEqual(promised.toSorted());
  expect(receiver.received.every((one) => receiver.verifies(one, webhook.secret))).toBe(true);
}, 90_000);
