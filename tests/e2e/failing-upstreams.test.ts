// A server that lists its models and fails every request is named as failing, with the cause, in each place where operators look, until it works again.
import { afterEach, expect, test } from "bun:test";
import { scrape } from "../support/exposition.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { adminOf } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { makeWorkspace, startProgram } from "../support/program.ts";
import { startReplicas } from "../support/replicas.ts";
import { chatScript, json, type Script, startUpstream } from "../support/scripted-upstream.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const canary = "CANARY of a prompt";
const error = (status: number, message: string): Script => {
  return (_request, res) => json(res, status, { error: { message, type: "server_error" } });
};
/** How a server fails: what it answers, the cause, the status, and what operators see of its message. */
const faults: readonly [Script, cause: string, status: number | null, message: string | RegExp | null][] = [
  [error(500, `CUDA out of memory at ${canary}`), "server_error", 500, "CUDA out of memory …"],
  [error(401, "Incorrect API key"), "authentication", 401, "Incorrect API key"],
  [error(429, "Slow down"), "rate_limit", 429, "Slow down"],
  [
    (_request, res) => json(res, 429, { error: { message: "You exceeded your quota", code: "insufficient_quota" } }),
    ...(["quota", 429, "You exceeded your quota"] as const),
  ],
  [() => {}, "timeout", null, /no answer began/],
  [
    (_request, res) => void res.writeHead(200, { "content-type": "text/html" }).end("<html>Welcome</html>"),
    ...(["no_answer", null, /^(?:bytes of the type text\/html|\d+ characters that are no JSON object)/] as const),
  ],
];

async function ask({ url }: { url: string }, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: canary }] }),
  });
  await response.text();
  return response.status;
}

async function startWorld() {
  const [bad, good, receiver] = await Promise.all([startUpstream(), startUpstream(), startWebhookReceiver()]);
  stack.push(bad, good, receiver);
  const clock = shiftedClock();
  const server = await startHeadrace({
    clock,
    yaml: `webhook_loopback: true
upstreams:
  - { name: bad, url: "${bad.url}", timeout_seconds: 1 }
  - { name: good, url: "${good.url}", discover: false }
models:
  - { id: upstream-model, deployments: [{ upstream: bad }], fallbacks: [other] }
  - { id: other, deployments: [{ upstream: good, model: upstream-model }] }
`,
    notificationTimes: { everyMs: 200 },
  });
  stack.push(server);
  const operator = await makeOperatorKey(server.dataDir);
  const admin = adminOf(server, operator);
  expect(
    (await admin("POST", "/webhooks", { url: receiver.url, events: ["upstream.failing", "upstream.recovered"] }))
      .status,
  ).toBe(200);
  return { bad, receiver, clock, server, operator, admin };
}

type World = Awaited<ReturnType<typeof startWorld>>;

const attemptsAt = async ({ admin }: Pick<World, "admin">, name = "bad") =>
  (await admin("GET", `/upstreams/${name}`)).body.attempts;

/** Asks twice a second, by the server's clock, until the upstream is failing: after ten seconds at the latest. */
async function failing(world: World) {
  const { server, clock } = world;
  const beganMs = clock.monotonicMs();
  for (;;) {
    expect(await ask(server, server.key)).toBe(200);
    const attempts = await attemptsAt(world);
    if (attempts?.failing) return attempts;
    expect(clock.monotonicMs() - beganMs).toBeLessThan(15_000);
    clock.shift(0.5);
  }
}

/** The deployment of the model, as the list of models' states shows it to this key. */
async function deploymentSeen(server: Pick<TestServer, "request">, key: string) {
  const response = await server.request("/v1/model-status", { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await response.json()) as {
    data: { id: string; deployments: { state: string; attempts: { failing: boolean; summary: string } | null }[] }[];
  };
  return data.find(({ id }) => id === "upstream-model")?.deployments[0];
}

test("names a failing upstream and its cause within five failures everywhere, and its recovery", async () => {
  const world = await startWorld();
  const { bad, receiver, clock, server, operator } = world;
  const gauge = async () => (await scrape(server)).series("headrace_upstream_failing");
  let recoveries = 0;
  for (const [script, cause, status, message] of faults) {
    bad.script(script);
    const attempts = await failing(world);
    expect(attempts).toMatchObject({
      ...{ failing: true, failed: expect.any(Number), window_seconds: 120, since: expect.any(Number) },
      failing_models: ["upstream-model"],
      last_failure: { cause, status },
    });
    if (message instanceof RegExp) expect(attempts.last_failure.message).toMatch(message);
    else expect(attempts.last_failure.message).toBe(message);
    expect(attempts.summary).not.toContain(canary);
    expect(await attemptsAt(world, "good")).toMatchObject({ failing: false, failed: 0, last_failure: null });

    expect(await deploymentSeen(server, operator)).toMatchObject({ state: "failing", attempts: { failing: true } });
    expect(await deploymentSeen(server, server.key)).toMatchObject({ state: "failing", attempts: null });
    const managed = (await world.admin("GET", "/models/upstream-model")).body;
    expect(managed).toMatchObject({ status: "down", deployments: [{ state: "failing", attempts: { failing: true } }] });
    expect(await gauge()).toEqual([{ upstream: "bad", model: "upstream-model", cause }]);
    const counted = { upstream: "bad", model: "upstream-model", cause };
    expect((await scrape(server)).get("headrace_upstream_attempts_total", counted)).toBeGreaterThanOrEqual(1);

    const logged = await until(
      () => server.logged("upstream_failing").find((entry) => entry["cause"] === cause),
      "it is logged",
    );
    expect(logged).toMatchObject({ level: "warn", upstream: "bad", models: "upstream-model", status });
    const sent = await until(
      () => receiver.received.find(({ body }) => body.data["cause"] === cause),
      "the webhook arrives",
      20_000,
    );
    expect(sent.body).toMatchObject({
      type: "upstream.failing",
      data: { upstream: "bad", models: ["upstream-model"], cause, status, window_seconds: 120 },
    });

    const before = receiver.received.length;
    bad.script(chatScript());
    await until(async () => {
      expect(await ask(server, server.key)).toBe(200);
      clock.shift(5);
      return !(await attemptsAt(world)).failing;
    }, "it has recovered");
    expect(await attemptsAt(world)).toMatchObject({ failing: false, since: null, failing_models: [] });
    expect(await deploymentSeen(server, operator)).toMatchObject({ state: "ok" });
    expect(await gauge()).toEqual([]);
    recoveries++;
    await until(() => server.logged("upstream_recovered").length === recoveries, "the recovery is logged");
    await until(() => receiver.received.length > before, "the recovery is sent", 20_000);
    expect(receiver.received.at(-1)?.body).toMatchObject({ type: "upstream.recovered", data: { upstream: "bad" } });
  }
  const texts = [server.logText(), ...receiver.received.map(({ text }) => text), (await scrape(server)).text];
  for (const text of texts) {
    expect(text).not.toContain(canary);
    expect(text).not.toContain("CUDA");
  }
}, 180_000);

test("names a failing upstream in `headrace models` and `headrace doctor` with a remedy", async () => {
  const world = await startWorld();
  const { bad, server, operator } = world;
  bad.script(error(500, "CUDA out of memory"));
  await failing(world);
  await using workspace = makeWorkspace();
  const env = { HEADRACE_BASE_URL: `${server.url}/v1`, HEADRACE_API_KEY: operator };
  const text =
    /upstream-model is failing at bad: (\d) of \1 failed in 2 min, last: 500 "CUDA out of memory" \(server error\), \d+ s ago/;
  for (const args of [["models"], ["models", "--all"]]) {
    await using models = startProgram(workspace, args, env);
    expect(await models.exitCode(60_000)).toBe(0);
    expect(models.stdout()).toMatch(text);
  }
  // The doctor reads the last report of each replica, which is at most 5 s old.
  const found = await until(
    async () => {
      await using doctor = startProgram(workspace, ["doctor", "--data-dir", server.dataDir]);
      expect(await doctor.exitCode(60_000)).toBe(1);
      return /is failing with/.test(doctor.stdout()) ? doctor.stdout() : undefined;
    },
    "the doctor names the upstream",
    30_000,
  );
  expect(found.replace(/\s+/g, " ")).toMatch(/is failing with upstream-model: (\d) of \1 failed in 2 min, last: 500/);
  expect(found).toContain("See the log of the model server.");
}, 180_000);

test("shows failures of worker processes in the primary process", async () => {
  const upstream = await startUpstream(error(503, "No slot"));
  stack.push(upstream);
  const server = await startHeadrace({
    yaml: `upstreams:\n  - { name: bad, url: "${upstream.url}" }\n`,
    flags: { mode: "production", publicUrl: "https://ai.example.test", logFormat: "json", workers: "2" },
  });
  stack.push(server);
  const admin = adminOf(server, await makeOperatorKey(server.dataDir));
  await until(
    async () => {
      await ask(server, server.key);
      const attempts = await attemptsAt({ admin });
      return attempts?.failing && attempts.last_failure.cause === "overload";
    },
    "it is failing",
    30_000,
  );
  upstream.script(chatScript());
  await until(
    async () => (await ask(server, server.key)) === 200 && !(await attemptsAt({ admin })).failing,
    "it has recovered",
    30_000,
  );
}, 120_000);

test("shows on each replica what another one saw fail", async () => {
  const upstream = await startUpstream(error(500, "CUDA out of memory"));
  stack.push(upstream);
  const replicas = await startReplicas({ yaml: `upstreams:\n  - { name: bad, url: "${upstream.url}" }\n` });
  stack.push(replicas);
  const [first, second] = replicas.servers as [TestServer, TestServer];
  const admin = adminOf(second, await makeOperatorKey(first.dataDir, [], replicas.env));
  for (let i = 0; i < 5; i++) await ask(first, replicas.key);
  const seen = await until(
    async () => {
      const attempts = await attemptsAt({ admin });
      return attempts?.failing ? attempts : undefined;
    },
    "the other replica shows it",
    15_000,
  );
  expect(seen).toMatchObject({
    ...{ failed: 5, attempts: 5, failing_models: ["upstream-model"] },
    last_failure: { cause: "server_error", message: "CUDA out of memory" },
  });
  upstream.script(chatScript());
  await until(async () => (await ask(first, replicas.key)) === 200, "it works", 15_000);
  await until(async () => !(await attemptsAt({ admin }))?.failing, "the other replica shows that", 15_000);
}, 120_000);
