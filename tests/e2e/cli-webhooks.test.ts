// `headrace webhooks` against a real server and a receiver.
import { afterEach, expect, test } from "bun:test";
import { runCommand } from "../fixtures/command-line.ts";
import { startHeadrace } from "../support/headrace.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

test("creates, tests, shows and deletes a webhook from the command line", async () => {
  const receiver = await startWebhookReceiver();
  stack.push(receiver);
  const server = await startHeadrace({ yaml: "webhook_loopback: true\n", notificationTimes: { everyMs: 20 } });
  stack.push(server);
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.key };
  const run = (...args: string[]) => runCommand(["webhooks", ...args], { env });

  expect((await run("list")).stderr).toContain("headrace webhooks create <url>");
  const made = await run("create", receiver.url, "--events", "quota.threshold", "--quiet");
  expect([made.code, made.stderr]).toEqual([0, ""]);
  const secret = made.stdout.trim();
  expect(secret).toStartWith("whsec_");
  const [{ id }] = JSON.parse((await run("list", "--json")).stdout);
  expect((await run("list")).stdout).toContain("quota.threshold");

  const tested = await run("test", id);
  expect([tested.code, tested.stdout, tested.stderr]).toEqual([0, "The receiver took it: 200.\n", ""]);
  expect(receiver.received.map((one) => receiver.verifies(one, secret))).toEqual([true]);

  receiver.answer(500);
  const failed = await run("test", id);
  expect(failed.code).toBe(1);
  expect(failed.stderr).toContain("The receiver did not take it: 500. It is tried again in ");
  const log = (await run("deliveries", id)).stdout;
  expect(log).toContain("webhook.test");
  expect(log).toContain("pending");
  expect(log).toContain("delivered");

  const refused = await run("create", "https://10.0.0.1/");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("public internet")]);
  expect((await run("delete", id)).code).toBe(2);
  expect((await run("delete", id, "--yes")).stdout).toContain("is deleted");
  expect(JSON.parse((await run("list", "--json")).stdout)).toEqual([]);
});
