// What accounts and operators are told, by webhooks and mail: once, signed, for as long as it takes, and never in the way of a request.
import { afterEach, describe, expect, test } from "bun:test";
import { SMTPServer } from "smtp-server";
import { Webhook } from "standardwebhooks";
import { scrape } from "../support/exposition.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ShiftedClock, shiftedClock } from "../support/manual-clock.ts";
import { adminOf } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople } from "../support/server-people.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface World {
  upstream: ScriptedUpstream;
  server: TestServer;
  receiver: WebhookReceiver;
  clock: ShiftedClock;
}

async function start(options: { timeoutMs?: number } = {}): Promise<World> {
  const [upstream, receiver] = await Promise.all([startUpstream(), startWebhookReceiver()]);
  stack.push(upstream, receiver);
  upstream.script((_request, res) =>
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: "upstream-model" },
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
    }),
  );
  const clock = shiftedClock();
  const server = await startHeadrace({
    clock,
    yaml: upstreamYaml(upstream, "webhook_loopback: true\nlimits: { queue_seconds: 1 }\n"),
    notificationTimes: { everyMs: 20, posting: { timeoutMs: options.timeoutMs ?? 2_000 } },
  });
  stack.push(server);
  return { upstream, server, receiver, clock };
}

async function call(server: TestServer, method: string, path: string, body?: unknown, headers = {}) {
  const response = await server.request(path, { method, headers, ...(body === undefined ? {} : { body }) });
  // biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
  return { status: response.status, body: (await response.json()) as any };
}

async function webhookOf({ server, receiver }: World, more: Record<string, unknown> = {}) {
  const { status, body } = await call(server, "POST", "/v1/webhooks", { url: receiver.url, ...more });
  expect(status).toBe(200);
  return body as { id: string; secret: string };
}

async function deliveriesOf(server: TestServer, id: string) {
  return (await call(server, "GET", `/v1/webhooks/${id}/deliveries`)).body.data as {
    event_id: string;
    type: string;
    state: string;
    attempts: { at: number; status: number | null; error: string | null }[];
    next_attempt_at: number | null;
  }[];
}

async function keyWith(server: TestServer, fields: Record<string, unknown>) {
  const { body } = await call(server, "POST", "/v1/keys", { name: "limited", ...fields });
  return body as { id: string; key: string };
}

async function chat(server: TestServer, key = server.key) {
  const body = { model: "upstream-model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
  const headers = { authorization: `Bearer ${key}` };
  const response = await server.request("/v1/chat/completions", { body, headers });
  await response.text();
  return response.status;
}

describe("a quota's thresholds", () => {
  test("notifies at 50, 80, 90 and 100 percent of a quota once each, signed with the webhook's secret", async () => {
    const world = await start();
    const { server, receiver } = world;
    const { secret } = await webhookOf(world, { events: ["quota.threshold"] });
    const { id, key } = await keyWith(server, { monthly_tokens: 200 });
    const reached = () => receiver.received.map(({ body }) => body.data["threshold"]);
    for (let requests = 1; requests <= 10; requests++) {
      expect(await chat(server, key)).toBe(200);
      const expected = [5, 8, 9, 10].filter((part) => part <= requests).length;
      await until(() => reached().length === expected, `${expected} notices after ${requests} requests`);
      await server.notices.quotaWatch.check();
    }
    expect(reached()).toEqual([50, 80, 90, 100]);
    const [first] = receiver.received;
    expect(first?.body).toMatchObject({
      type: "quota.threshold",
      data: { owner: "key", owner_id: id, environment: "dev", unit: "tokens", limit: 200, used: 100 },
    });
    for (const one of receiver.received) {
      expect(one.id).toMatch(/^evt_/);
      expect(new Webhook(secret).verify(one.text, one.headers)).toEqual(one.body);
    }
  });

  test("notifies again in a new window or after a changed limit, and not for an unused limit", async () => {
    const world = await start();
    const { server, receiver, clock } = world;
    await webhookOf(world);
    const { id, key } = await keyWith(server, { monthly_tokens: 40 });
    await keyWith(server, { monthly_tokens: 0 });
    await chat(server, key);
    await until(() => receiver.received.length === 1, "50 percent");
    await call(server, "PATCH", `/v1/keys/${id}`, { monthly_tokens: 44 });
    await chat(server, key);
    await until(() => receiver.received.length === 2, "90 percent of the other limit");
    clock.shift(32 * 86_400);
    expect(await chat(server, key)).toBe(200);
    await until(() => receiver.received.length === 3, "45 percent is not told, so this is the next one", 500).catch(
      () => {},
    );
    expect(await chat(server, key)).toBe(200);
    await until(() => receiver.received.length === 3, "90 percent of the next month");
    expect(receiver.received.map(({ body }) => body.data["threshold"])).toEqual([50, 90, 90]);
  });
});

describe("a webhook receiver", () => {
  // hardening: F37
  test("delays no request for a hanging receiver, and loses no event while it is away for an hour", async () => {
    const world = await start({ timeoutMs: 150 });
    const { server, receiver, clock } = world;
    const { id, secret } = await webhookOf(world);
    receiver.answer(undefined);
    const tookMs: number[] = [];
    for (let made = 0; made < 6; made++) {
      await chat(server, (await keyWith(server, { monthly_tokens: 40 })).key);
      const began = performance.now();
      expect(await chat(server)).toBe(200);
      tookMs.push(performance.now() - began);
    }
    // A request that waited for the receiver would take as long as that may: each of them, however busy the machine is.
    expect(Math.min(...tookMs)).toBeLessThan(150);
    await until(async () => {
      const all = await deliveriesOf(server, id);
      return all.length === 6 && all.every(({ attempts }) => attempts.length > 0);
    }, "each was tried");
    for (let minutes = 0; minutes < 60; minutes += 10) {
      clock.shift(600);
      // All that is due by now is tried, and hangs.
      await until(async () => {
        const due = (await deliveriesOf(server, id)).map(({ next_attempt_at: at }) => at ?? Number.POSITIVE_INFINITY);
        return due.every((at) => at > clock.nowSeconds());
      }, "what is due was tried");
    }
    for (const { attempts, state } of await deliveriesOf(server, id)) {
      expect([attempts.length >= 4, state]).toEqual([true, "pending"]);
    }
    const before = receiver.received.length;
    receiver.answer(204);
    await until(async () => {
      clock.shift(3_600);
      return (await deliveriesOf(server, id)).filter(({ state }) => state === "delivered").length === 6;
    }, "all of them arrive");
    const ids = (some: typeof receiver.received) => [...new Set(some.map((one) => one.id))].sort();
    expect(ids(receiver.received.slice(before))).toHaveLength(6);
    expect(ids(receiver.received)).toHaveLength(6);
    expect(receiver.received.every((one) => receiver.verifies(one, secret))).toBe(true);
  });

  test("retries a receiver that redirects, fails or throttles on the Standard Webhooks schedule", async () => {
    const world = await start();
    const { server, receiver, clock } = world;
    const { id } = await webhookOf(world);
    receiver.answer(302, { location: receiver.url });
    await call(server, "POST", `/v1/webhooks/${id}/test`);
    const waits: number[] = [];
    for (let attempt = 1; attempt < 10; attempt++) {
      const delivery = await until(async () => {
        const [one] = await deliveriesOf(server, id);
        return one?.attempts.length === attempt ? one : undefined;
      }, `attempt ${attempt}`);
      const { at } = delivery.attempts.at(-1) ?? { at: 0 };
      const wait = (delivery.next_attempt_at ?? 0) - at;
      waits.push(wait);
      expect(delivery.attempts.at(-1)).toMatchObject({ status: 302, error: null });
      clock.shift(wait + 1);
    }
    const advised = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (const [i, wait] of advised.entries()) {
      expect(waits[i]).toBeGreaterThanOrEqual(wait);
      expect(waits[i]).toBeLessThanOrEqual(Math.ceil(wait * 1.1));
    }
    await until(async () => (await deliveriesOf(server, id))[0]?.state === "failed", "it is given up");
    expect(new Set(receiver.received.map((one) => one.id)).size).toBe(1);
    expect(receiver.received).toHaveLength(10);
    receiver.answer(503, { "retry-after": "4000" });
    await call(server, "POST", `/v1/webhooks/${id}/test`);
    await until(async () => {
      const [one] = await deliveriesOf(server, id);
      return (one?.next_attempt_at ?? 0) - (one?.attempts[0]?.at ?? 0) === 4_000;
    }, "it is left alone");
    const { samples } = await scrape(server);
    const ended = samples.filter(
      ({ name, labels }) => name === "headrace_notice_attempts_total" && labels["way"] === "webhook",
    );
    expect(ended.map(({ labels, value }) => [labels["result"], value])).toEqual([
      ["delivered", 0],
      ["again", 10],
      ["failed", 1],
    ]);
    // Whatever it says beside its status is nobody's to see.
    expect(JSON.stringify(await deliveriesOf(server, id))).not.toContain("inside");
  });

  test("disables a webhook that answers 410, and audits it", async () => {
    const world = await start();
    const { server, receiver } = world;
    const { id } = await webhookOf(world);
    receiver.answer(410);
    await call(server, "POST", `/v1/webhooks/${id}/test`);
    await until(
      async () => (await call(server, "GET", `/v1/webhooks/${id}`)).body.disabled_reason === "gone",
      "disabled",
    );
    expect(await deliveriesOf(server, id)).toMatchObject([{ state: "failed" }]);
    expect((await call(server, "POST", `/v1/webhooks/${id}/test`)).status).toBe(400);
    await call(server, "PATCH", `/v1/webhooks/${id}`, { enabled: true });
    receiver.answer(200);
    expect((await call(server, "POST", `/v1/webhooks/${id}/test`)).status).toBe(200);
    await until(async () => (await deliveriesOf(server, id))[0]?.state === "delivered", "it works again");
    const { admin } = { admin: adminOf(server, await makeOperatorKey(server.dataDir)) };
    const { body } = await admin("GET", `/audit?target=${id}`);
    const actions = body.data.map(({ action }: { action: string }) => action);
    expect(actions).toEqual(["webhook.updated", "webhook.disabled", "webhook.created"]);
  });

  // hardening: F37
  test("delivers to other receivers while one hangs", async () => {
    const world = await start({ timeoutMs: 1_500 });
    const { server } = world;
    const other = await startWebhookReceiver();
    stack.push(other);
    world.receiver.answer(undefined);
    await webhookOf(world);
    await call(server, "POST", "/v1/webhooks", { url: other.url });
    for (let made = 0; made < 8; made++) await chat(server, (await keyWith(server, { monthly_tokens: 40 })).key);
    await until(() => other.received.length === 8, "the other one has them", 1_400);
  });
});

describe("webhooks", () => {
  test("shows a webhook's secret once, signs with two during rotation, and audits both", async () => {
    const world = await start();
    const { server, receiver, clock } = world;
    const made = await webhookOf(world, { description: "Pager", events: ["quota.threshold"] });
    expect(made.secret).toMatch(/^whsec_/);
    const shown = await call(server, "GET", `/v1/webhooks/${made.id}`);
    expect(shown.body).toMatchObject({ description: "Pager", environment: "dev", enabled: true });
    expect(JSON.stringify([shown.body, (await call(server, "GET", "/v1/webhooks")).body])).not.toContain(made.secret);
    const { body: rotated } = await call(server, "POST", `/v1/webhooks/${made.id}/rotate-secret`, {
      overlap_seconds: 60,
    });
    expect(rotated.secrets).toHaveLength(2);
    await call(server, "POST", `/v1/webhooks/${made.id}/test`);
    const first = await until(() => receiver.received[0], "signed with both");
    expect([made.secret, rotated.secret].map((secret) => receiver.verifies(first, secret))).toEqual([true, true]);
    clock.shift(61);
    await call(server, "POST", `/v1/webhooks/${made.id}/test`);
    const second = await until(() => receiver.received[1], "signed with the new one");
    expect([made.secret, rotated.secret].map((secret) => receiver.verifies(second, secret))).toEqual([false, true]);
    expect((await call(server, "DELETE", `/v1/webhooks/${made.id}`)).body).toMatchObject({ deleted: true });
    expect((await call(server, "GET", `/v1/webhooks/${made.id}`)).status).toBe(404);
    expect(server.logText()).not.toContain("whsec_");
  });

  test("refuses webhooks to members and child keys, and beyond 20", async () => {
    const world = await start();
    const { server, receiver } = world;
    const people = openServerPeople(server);
    const [member, admin] = [await people.addMember("member"), await people.addMember("admin")];
    const body = { url: receiver.url };
    const child = await keyWith(server, { scopes: ["keys:manage"] });
    const childs = { authorization: `Bearer ${child.key}` };
    const by = async ({ headers }: typeof member) => {
      const init = {
        method: "POST",
        body: JSON.stringify(body),
        headers: { ...headers, "content-type": "application/json" },
      };
      return (await fetch(`${server.url}/v1/webhooks`, init)).status;
    };
    expect([await by(member), await by(admin)]).toEqual([403, 200]);
    await people.close();
    expect((await call(server, "POST", "/v1/webhooks", body, childs)).status).toBe(403);
    expect((await call(server, "GET", "/v1/webhooks", undefined, childs)).status).toBe(403);
    for (let made = 1; made < 20; made++) await webhookOf(world);
    const { status, body: refused } = await call(server, "POST", "/v1/webhooks", body);
    expect([status, refused.error.message]).toEqual([400, expect.stringContaining("20")]);
  });

  test("refuses webhooks to internal addresses, even where this machine is allowed", async () => {
    const { server } = await start();
    for (const url of [
      "https://10.0.0.1/",
      "http://example.com/",
      "https://u@example.com/",
      "https://[::ffff:7f00:1]/",
    ]) {
      const { status, body } = await call(server, "POST", "/v1/webhooks", { url });
      expect([url, status, body.error.param]).toEqual([url, 400, "url"]);
    }
  });
});

test("mails owners and admins unless they opted out, and retries while the mail server is away", async () => {
  const received: { to: string[]; text: string }[] = [];
  let isAway = true;
  const smtp = new SMTPServer({
    ...{ logger: false, authOptional: true, disabledCommands: ["STARTTLS"] },
    onMailFrom: (_address, _session, done) => (isAway ? done(new Error("Try later")) : done()),
    onData(stream, session, done) {
      let text = "";
      stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
      stream.on("end", () => {
        received.push({ to: session.envelope.rcptTo.map(({ address }) => address), text });
        done();
      });
    },
  });
  smtp.on("error", () => undefined);
  const port = await new Promise<number>((resolve) => {
    const listening = smtp.listen(0, "127.0.0.1", () => {
      const address = listening.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  stack.push({ [Symbol.asyncDispose]: () => new Promise<void>((resolve) => smtp.close(() => resolve())) });
  const clock = shiftedClock();
  const yaml = `mail: { url: "smtp://127.0.0.1:${port}", from: "Headrace <headrace@example.com>" }\n`;
  const server = await startHeadrace({ clock, yaml, notificationTimes: { everyMs: 20 } });
  stack.push(server);
  const people = openServerPeople(server);
  const [owner, quiet] = [await people.addMember("owner"), await people.addMember("admin")];
  await people.addMember("member");
  await people.close();
  const settings = async ({ headers }: typeof quiet, init: RequestInit = {}) => {
    const all = { ...headers, "content-type": "application/json" };
    return (await fetch(`${server.url}/v1/session/notices`, { headers: all, ...init })).json();
  };
  expect(await settings(quiet)).toEqual({ object: "notice_settings", mail: true, mail_is_sent: true });
  const off = { method: "PUT", body: JSON.stringify({ mail: false }) };
  expect(await settings(quiet, off)).toMatchObject({ mail: false });
  const { id } = await keyWith(server, { expires_at: clock.nowSeconds() + 30 * 86_400 });
  clock.shift(24 * 86_400);
  await server.notices.keyWatch.check();
  await Bun.sleep(100);
  expect(received).toEqual([]);
  isAway = false;
  await until(() => {
    clock.shift(10);
    return received.length > 0;
  }, "the mail arrives");
  await Bun.sleep(100);
  expect(received).toHaveLength(1);
  expect(received[0]?.to).toEqual([owner.person.email]);
  expect(received[0]?.text).toContain("Subject: Headrace: An API key ends within 7 days");
  expect(received[0]?.text).toContain(id);
});

test("notifies operators, not accounts, once when an upstream goes down and once when it recovers", async () => {
  const world = await start();
  const { server, receiver, clock, upstream } = world;
  const admin = adminOf(server, await makeOperatorKey(server.dataDir));
  await webhookOf(world);
  const other = await startWebhookReceiver();
  stack.push(other);
  const made = await admin("POST", "/webhooks", { url: other.url, events: ["upstream.down", "upstream.up"] });
  expect(made).toMatchObject({ status: 200, body: { environment: null } });
  const port = Number(new URL(upstream.url).port);
  await upstream[Symbol.asyncDispose]();
  stack.splice(stack.indexOf(upstream), 1);
  await server.catalog.refresh();
  await until(
    async () => {
      await server.catalog.refresh();
      clock.shift(20);
      return other.received.length > 0;
    },
    "it is down",
    20_000,
  );
  expect(other.received[0]?.body).toMatchObject({ type: "upstream.down", data: { upstream: expect.any(String) } });
  using again = Bun.serve({
    ...{ port, hostname: "127.0.0.1" },
    fetch: () => Response.json({ object: "list", data: [{ id: "upstream-model", object: "model" }] }),
  });
  expect(again.port).toBe(port);
  await until(
    async () => {
      clock.shift(70);
      await server.catalog.refresh();
      return other.received.length > 1;
    },
    "it is up",
    20_000,
  );
  expect(other.received.map(({ body }) => body.type)).toEqual(["upstream.down", "upstream.up"]);
  expect(receiver.received).toEqual([]);
}, 60_000);

test("notifies an account once of failing requests and of keys that expire soon or are unused", async () => {
  const world = await start();
  const { server, receiver, clock, upstream } = world;
  await webhookOf(world);
  upstream.script((_request, res) => json(res, 500, { error: { message: "broken" } }));
  await Promise.all(Array.from({ length: 25 }, () => chat(server)));
  await until(() => receiver.received.length > 0, "they fail");
  await server.notices.incidentWatch.check();
  expect(receiver.received.map(({ body }) => body.type)).toEqual(["errors.rate"]);
  expect(receiver.received[0]?.body.data).toMatchObject({ environment: "dev", window_seconds: 300 });

  const now = clock.nowSeconds();
  const { id } = await keyWith(server, { expires_at: now + 30 * 86_400 });
  await server.notices.keyWatch.check();
  clock.shift(24 * 86_400);
  await server.notices.keyWatch.check();
  await server.notices.keyWatch.check();
  await until(() => receiver.received.length === 2, "a week");
  expect(receiver.received[1]?.body).toMatchObject({ type: "key.expiring", data: { key_id: id, days: 7 } });
  clock.shift(5.5 * 86_400);
  await server.notices.keyWatch.check();
  await until(() => receiver.received.length === 3, "a day");
  expect(receiver.received[2]?.body).toMatchObject({ type: "key.expiring", data: { key_id: id, days: 1 } });
  const idle = await keyWith(server, {});
  clock.shift(91 * 86_400);
  await server.notices.keyWatch.check();
  await until(() => receiver.received.some(({ body }) => body.data["key_id"] === idle.id), "it is unused");
  expect(receiver.received.at(-1)?.body).toMatchObject({ type: "key.unused", data: { days: 90 } });
});

test("notifies an account once of the announced end of a model that its keys use, and of no other", async () => {
  const receiver = await startWebhookReceiver();
  const clock = shiftedClock();
  const day = (days: number) => new Date((clock.nowSeconds() + days * 86_400) * 1000).toISOString().slice(0, 10);
  const end = day(6);
  const answer = {
    ...{ id: "c", object: "chat.completion", created: 1, model: "used" },
    choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  const ending = ["used", "unused"].map((id) => ({ id, object: "model", shutdown_date: end }));
  const upstream = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch: ({ url }) =>
      Response.json(url.endsWith("/models") ? { object: "list", data: [...ending, { id: "stays" }] } : answer),
  });
  stack.push(receiver, { [Symbol.asyncDispose]: () => upstream.stop(true) });
  const yaml = `webhook_loopback: true\nupstreams: [{ name: gpu, url: "http://127.0.0.1:${upstream.port}/v1" }]\n`;
  const server = await startHeadrace({ clock, yaml, notificationTimes: { everyMs: 20 } });
  stack.push(server);
  await call(server, "POST", "/v1/webhooks", { url: receiver.url });
  expect((await call(server, "GET", "/v1/models/used")).body).toMatchObject({ shutdown_date: end });
  expect((await call(server, "GET", "/v1/models/stays")).body).not.toHaveProperty("shutdown_date");
  for (const model of ["used", "stays"]) {
    const body = { model, messages: [{ role: "user", content: "Hello" }] };
    expect((await call(server, "POST", "/v1/chat/completions", body)).status).toBe(200);
  }
  await until(async () => {
    await server.notices.keyWatch.check();
    return receiver.received.length > 0;
  }, "the account is notified");
  await server.notices.keyWatch.check();
  // Half a day before the end, at any time of day.
  clock.shift(Date.parse(end) / 1_000 - 43_200 - clock.nowSeconds());
  await server.notices.keyWatch.check();
  await until(() => receiver.received.length > 1, "the account is notified a day before");
  const told = receiver.received.map(({ body }) => [body.type, body.data]);
  expect(told).toEqual([7, 1].map((days) => ["model.shutdown", { model: "used", shutdown_date: end, days }]));
});

describe("webhooks for other receivers", () => {
  test("posts to Alertmanager and PagerDuty in the operators' own network, which accounts cannot use", async () => {
    const receiver = await startWebhookReceiver();
    stack.push(receiver);
    const server = await startHeadrace({
      yaml: "webhook_networks: [127.0.0.0/8]\n",
      notificationTimes: { everyMs: 20 },
    });
    stack.push(server);
    const admin = adminOf(server, await makeOperatorKey(server.dataDir));
    const url = receiver.url;
    const alertmanager = (await admin("POST", "/webhooks", { url, format: "alertmanager" })).body as { id: string };
    await admin("POST", `/webhooks/${alertmanager.id}/test`);
    await until(() => receiver.received.length === 1, "the alert arrived");
    expect(receiver.received[0]?.body).toMatchObject([
      { labels: { alertname: "webhook.test", service: "headrace", subject: alertmanager.id } },
    ]);

    const unnamed = await admin("POST", "/webhooks", { url, format: "pagerduty" });
    expect(unnamed).toMatchObject({ status: 400, body: { error: { param: "routing_key" } } });
    const pagerDuty = await admin("POST", "/webhooks", { url, format: "pagerduty", routing_key: "key-1" });
    const { id } = pagerDuty.body as { id: string };
    await admin("POST", `/webhooks/${id}/rotate-secret`, { routing_key: "key-2" });
    await admin("POST", `/webhooks/${id}/test`);
    await until(() => receiver.received.length === 2, "the event arrived");
    expect(receiver.received[1]).toMatchObject({ id: "", body: { routing_key: "key-2", event_action: "trigger" } });
    const shown = await admin("GET", `/webhooks/${id}`);
    expect(JSON.stringify(shown.body)).not.toContain('key-2"');

    const refused = await call(server, "POST", "/v1/webhooks", { url });
    expect(refused).toMatchObject({ status: 400, body: { error: { param: "url" } } });
  });
});
