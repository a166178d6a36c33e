// A replica that is told to stop: not ready at once, it answers on until load balancers have heard of it, then refuses, then ends.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/config.ts";
import { until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { chatScript, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function start(lameDuckSeconds: number): Promise<{ server: ServerProcess; key: string }> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-lame-duck-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true, force: true }) });
  const upstream = await startUpstream(chatScript());
  stack.push(upstream);
  const [config, dataDir] = [join(directory, "headrace.yaml"), join(directory, "data")];
  writeFileSync(config, upstreamYaml(upstream));
  const args = ["--mode", "production", "--public-url", "https://ai.example.com"];
  const server = await startServerProcess({
    ...{ config, dataDir },
    args: [...args, "--lame-duck-seconds", String(lameDuckSeconds)],
  });
  stack.push(server);
  await until(async () => (await fetch(`${server.url}/readyz`)).ok, "it is ready");
  return { server, key: (await Bun.file(join(dataDir, "credentials.json")).json()).api_key };
}

const chat = (url: string, key: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "Hello" }] }),
  });

// hardening: F31
test("answers on after SIGTERM while not ready, then closes connections, refuses new ones, and closes the port", async () => {
  const { server, key } = await start(2);
  const kept = await chat(server.url, key);
  expect([kept.status, kept.headers.get("connection")]).not.toContain("close");
  await kept.text();
  server.process.kill("SIGTERM");
  const readiness = async () => (await fetch(`${server.url}/readyz`)).json();
  expect(
    await until(async () => {
      const { status, checks } = (await readiness()) as { status: string; checks: Record<string, string> };
      return status === "not_ready" && checks;
    }, "it is not ready"),
  ).toMatchObject({ server: "draining", spool: "ok", database: "ok" });
  const seen: string[] = [];
  for (;;) {
    const answer = await chat(server.url, key).catch(() => undefined);
    const body = await answer?.text();
    const reported = answer === undefined ? "closed" : `${answer.status} ${answer.headers.get("connection")}`;
    if (seen.at(-1) !== reported) seen.push(reported);
    if (answer === undefined) break;
    if (answer.status === 503) {
      expect(body).toContain("The server is being stopped; send the request again.");
      expect(answer.headers.get("retry-after")).toBe("5");
      // Who asks whether it lives is told so to the end.
      const alive = await fetch(`${server.url}/healthz`).catch(() => undefined);
      if (alive) expect(alive.status).toBe(200);
    }
    await Bun.sleep(20);
  }
  expect(seen).toEqual(["200 close", "503 close", "closed"]);
  expect(await server.process.exited).toBe(0);
}, 60_000);

// hardening: F31
test("stops at once on a second signal during the grace period", async () => {
  const { server } = await start(300);
  server.process.kill("SIGTERM");
  await until(async () => !(await fetch(`${server.url}/readyz`)).ok, "it is not ready");
  const began = performance.now();
  // The first ones may be the same, come twice.
  const again = setInterval(() => server.process.kill("SIGTERM"), 200);
  const code = await server.process.exited;
  clearInterval(again);
  expect(code).toBe(1);
  expect(performance.now() - began).toBeLessThan(withinMs(5_000));
}, 60_000);

test("waits 5 s before refusing requests if a replica can take over, and not at all for one server or a terminal", async () => {
  const secret = { HEADRACE_SECRET: "ab".repeat(32) };
  const production = { HEADRACE_MODE: "production", HEADRACE_PUBLIC_URL: "https://ai.example.com" };
  const postgres = { HEADRACE_DATABASE_URL: "postgres://db.example.com/headrace", ...secret };
  const own = { HEADRACE_LAME_DUCK_SECONDS: "12" };
  const environments = [{}, production, postgres, { ...production, ...postgres }, { ...production, ...own }];
  const configs = await Promise.all(environments.map((env) => loadConfig({ env, cwd: "/nonexistent" })));
  expect(configs.map(({ lameDuckSeconds }) => lameDuckSeconds)).toEqual([0, 0, 0, 5, 12]);
});
