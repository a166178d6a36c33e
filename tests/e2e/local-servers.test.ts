// Model servers on this machine: served at once in development, only told of in production.
import { describe, expect, test } from "bun:test";
import { type AddressInfo, createServer } from "node:net";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { json, startUpstream } from "../support/scripted-upstream.ts";

const messages = [{ role: "user" as const, content: "Hi" }];
const production = { mode: "production", publicUrl: "https://ai.example.com" };

function localServer(name: string, url: string) {
  return { name, title: name.toUpperCase(), port: Number(new URL(url).port) };
}

test("lists and serves models of a local server in development", async () => {
  await using fake = await startUpstream();
  fake.serves([{ id: "llama3.2:1b", object: "model", created: 1_700_000_000, owned_by: "library" }]);
  await using server = await startHeadrace({ localServers: [localServer("ollama", fake.url)] });
  const client = openaiClient(server);
  expect((await client.models.list()).data).toMatchObject([{ id: "llama3.2:1b", owned_by: "library" }]);
  const completion = await client.chat.completions.create({ model: "llama3.2:1b", messages });
  expect(completion.choices[0]?.message.content).toBe("Hello world");
  expect(fake.requests[0]?.headers.authorization).toBeUndefined();
});

test("reports but does not serve models of a local server in production", async () => {
  await using fake = await startUpstream();
  await using server = await startHeadrace({ localServers: [localServer("ollama", fake.url)], flags: production });
  expect(await server.localServers).toMatchObject([{ name: "ollama", url: fake.url, models: ["upstream-model"] }]);
  expect(server.key).toStartWith("sk_live_hr_");
  expect((await openaiClient(server).models.list()).data).toEqual([]);
  const answer = await server.request("/v1/chat/completions", { body: { model: "upstream-model", messages } });
  expect(answer.status).toBe(404);
  expect(fake.requests).toEqual([]);
});

test("does not serve a local server twice if it is configured under another name", async () => {
  await using fake = await startUpstream();
  const yaml = `upstreams: [{ name: mine, url: "${fake.url.replace("127.0.0.1", "localhost")}" }]\n`;
  await using server = await startHeadrace({ localServers: [localServer("ollama", fake.url)], yaml });
  expect(server.catalog.list().map(({ id, deployments }) => [id, deployments.length])).toEqual([["upstream-model", 1]]);
});

test("discovers a local server and its models that appear later on the next poll", async () => {
  let models: { id: string; object: string }[] | undefined;
  const slow = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => (models ? Response.json({ object: "list", data: models }) : new Response("loading", { status: 503 })),
  });
  try {
    const address = `http://127.0.0.1:${slow.port}`;
    await using server = await startHeadrace({ localServers: [localServer("llama-server", address)], pollMs: 50 });
    const ids = async () => (await openaiClient(server).models.list()).data.map(({ id }) => id).join();
    expect(await ids()).toBe("");
    models = [{ id: "late", object: "model" }];
    await until(async () => (await ids()) === "late", "the late server's model is listed");
    models = [...models, { id: "later", object: "model" }];
    await until(async () => (await ids()) === "late,later", "its new model is listed");
  } finally {
    await slow.stop(true);
  }
});

describe("ignores local servers that are no model servers", () => {
  test("ignores a local web server with unrelated answers", async () => {
    const web = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("<html>Welcome</html>") });
    try {
      await using server = await startHeadrace({
        localServers: [localServer("vllm", `http://127.0.0.1:${web.port}/`)],
      });
      expect(await server.localServers).toEqual([]);
    } finally {
      await web.stop(true);
    }
  });

  test("ignores a local port that accepts connections and never answers", async () => {
    const mute = createServer(() => {}).listen(0, "127.0.0.1");
    await new Promise((resolve) => mute.once("listening", resolve));
    try {
      const { port } = mute.address() as AddressInfo;
      await using server = await startHeadrace({ localServers: [{ name: "vllm", title: "vLLM", port }] });
      expect(await server.localServers).toEqual([]);
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    } finally {
      mute.close();
    }
  });

  test("reports but does not serve a local server that requires a key", async () => {
    const locked = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("", { status: 401 }) });
    try {
      const url = `http://127.0.0.1:${locked.port}`;
      await using server = await startHeadrace({ localServers: [localServer("lmstudio", url)] });
      expect(await server.localServers).toMatchObject([{ name: "lmstudio", url: `${url}/v1`, models: undefined }]);
      expect(server.catalog.list()).toEqual([]);
    } finally {
      await locked.stop(true);
    }
  });
});

test("names a failing local server in the log, not in the answer", async () => {
  await using fake = await startUpstream((_request, res) => json(res, 500, { error: { message: "boom" } }));
  await using server = await startHeadrace({ localServers: [localServer("ollama", fake.url)] });
  const answer = await server.request("/v1/chat/completions", { body: { model: "upstream-model", messages } });
  expect(answer.status).toBe(502);
  expect(await answer.text()).not.toContain("ollama");
  const line = await until(() => server.logged("request").find((entry) => entry["status"] === 502), "the log line");
  expect(String(line["detail"])).toContain("ollama");
});
