// Addresses that others supply: only servers that an operator configured are ever connected to, and their keys go nowhere else.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { head, raw } from "./raw-client.ts";
import {
  goodAnswer,
  plainAnswer,
  type RawUpstream,
  rawYaml,
  startRawUpstream,
  streamHead,
  upstreamKey,
} from "./raw-upstream.ts";

/** A server that nobody may connect to: what a redirect or a URL in a request leads to. */
interface Trap {
  url: string;
  host: string;
  /** What came on each connection. */
  connections: string[];
}

let trap: Trap;
let listener: Server;
const sockets = new Set<Socket>();
let upstream: RawUpstream;
let server: TestServer;

beforeAll(async () => {
  const connections: string[] = [];
  listener = createServer((socket) => {
    sockets.add(socket);
    const index = connections.push("") - 1;
    socket.on("data", (bytes) => {
      connections[index] += bytes.toString("latin1");
      socket.write(plainAnswer(200, JSON.stringify({ object: "list", data: [{ id: "trap-model" }] })));
    });
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  trap = { url: `http://${host}`, host, connections };
  upstream = await startRawUpstream();
  server = await startHeadrace({ yaml: rawYaml(upstream) });
});

beforeEach(() => {
  trap.connections.length = 0;
  upstream.requests.length = 0;
  upstream.script((socket) => void socket.write(goodAnswer));
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => listener.close(resolve));
});

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

describe("redirects of servers", () => {
  // hardening: F33
  test.each([301, 302, 303, 307, 308])(
    "does not follow a model server's %d, streamed or not, and keeps the key",
    async (status) => {
      for (const location of [trap.url, `${trap.url}/v1/chat/completions`, `//${trap.host}/v1`]) {
        upstream.script((socket) => void socket.write(plainAnswer(status, "{}", { Location: location })));
        for (const [path, body] of [
          ["/v1/chat/completions", chat],
          ["/v1/chat/completions", { ...chat, stream: true }],
          ["/v1/completions", { model: "upstream-model", prompt: "Hi" }],
          ["/v1/embeddings", { model: "upstream-model", input: "Hi" }],
        ] as const) {
          const response = await server.request(path, { body });
          expect([path, location, response.status]).toEqual([path, location, 502]);
          expect(await response.text()).not.toContain(trap.host);
        }
      }
      expect(upstream.requests).toHaveLength(12);
      expect(trap.connections).toEqual([]);
    },
  );

  // hardening: F33
  test.each(["own", "fetch"])("does not follow redirects of a model list (http_client: %s)", async (client) => {
    await using moved = await redirecting(`${trap.url}/v1/models`);
    const yaml = `upstreams:\n  - { name: moved, url: "${moved.url}/v1", api_key: ${upstreamKey}, http_client: ${client} }\n`;
    await using gateway = await startHeadrace({ yaml });
    await gateway.catalog.refresh();
    expect(moved.asked()).toBeGreaterThan(0);
    const list = (await (await gateway.request("/v1/models")).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).not.toContain("trap-model");
    expect(trap.connections).toEqual([]);
  });

  // hardening: F33
  test("does not follow redirects of an identity provider's metadata or endpoints", async () => {
    await using moved = await redirecting(`${trap.url}/.well-known/openid-configuration`);
    const yaml = `${rawYaml(upstream)}sso: { name: Example, issuer: "${moved.url}", client_id: headrace, client_secret: canary-secret }\n`;
    await using gateway = await startHeadrace({ yaml });
    const response = await fetch(`${gateway.url}/sso/start`, { redirect: "manual" });
    await response.text();
    expect([response.status >= 400, response.headers.get("location")]).toEqual([true, null]);
    expect(moved.asked()).toBeGreaterThan(0);
    expect(trap.connections).toEqual([]);
  });
});

describe("URLs in a request", () => {
  // hardening: F33
  test("passes URLs of images, audio and files on as text without fetching them", async () => {
    const content = [
      { type: "text", text: `Look at ${trap.url}/text` },
      { type: "image_url", image_url: { url: `${trap.url}/image.png` } },
      { type: "image_url", image_url: { url: `http://user:pass@${trap.host}/image.png`, detail: "high" } },
      { type: "file", file: { file_id: `${trap.url}/file`, filename: `${trap.url}/name` } },
    ];
    const more = {
      user: `${trap.url}/user`,
      metadata: { webhook: `${trap.url}/hook`, callback_url: `${trap.url}/callback` },
      webhook_url: `${trap.url}/webhook`,
      tools: [{ type: "function", function: { name: "fetch", description: `${trap.url}/tool` } }],
    };
    const response = await server.request("/v1/chat/completions", {
      body: { ...chat, messages: [{ role: "user", content }], ...more },
    });
    expect(response.status).toBe(200);
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]?.body).toContain(`${trap.url}/image.png`);
    expect(trap.connections).toEqual([]);
  });

  // hardening: F33
  test("refuses URLs that replace the gateway's own, without calling them", async () => {
    for (const name of ["base_url", "api_base"]) {
      const response = await server.request("/v1/chat/completions", { body: { ...chat, [name]: trap.url } });
      expect([name, response.status, await response.text()]).toEqual([name, 400, expect.stringContaining(name)]);
    }
    expect([upstream.requests.length, trap.connections.length]).toEqual([0, 0]);
  });

  // hardening: F33
  test("reaches no model server by a URL in place of a model name", async () => {
    for (const model of [
      trap.url,
      `${trap.url}/v1`,
      `//${trap.host}`,
      `${trap.host}/upstream-model`,
      `upstream-model@${trap.host}`,
    ]) {
      const response = await server.request("/v1/chat/completions", { body: { ...chat, model } });
      expect([model, response.status]).toEqual([model, 404]);
      await (await server.request(`/v1/models/${encodeURIComponent(model)}`)).text();
    }
    expect([upstream.requests.length, trap.connections.length]).toEqual([0, 0]);
  });

  // hardening: F17
  test.each([
    ["the target as a whole URL", (host: string) => [`http://${host}/v1/chat/completions`, "Host: 127.0.0.1"]],
    ["Host", (host: string) => ["/v1/chat/completions", `Host: ${host}`]],
    ["X-Forwarded-Host", (host: string) => ["/v1/chat/completions", "Host: 127.0.0.1", `X-Forwarded-Host: ${host}`]],
    [
      "Forwarded",
      (host: string) => ["/v1/chat/completions", "Host: 127.0.0.1", `Forwarded: host="${host}";proto=http`],
    ],
    [
      "X-Original-URL",
      (host: string) => ["/v1/chat/completions", "Host: 127.0.0.1", `X-Original-URL: http://${host}/`],
    ],
    [
      "Referer and Origin",
      (host: string) => [
        "/v1/chat/completions",
        "Host: 127.0.0.1",
        `Referer: http://${host}/`,
        `Origin: http://${host}`,
      ],
    ],
  ] as const)("does not act as a proxy for a URL in %s", async (_name, make) => {
    const [target = "", ...lines] = make(trap.host);
    const body = JSON.stringify(chat);
    const all = [
      ...lines,
      `Authorization: Bearer ${server.key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
    ];
    const { answers } = await raw(server.url, head(`POST ${target} HTTP/1.1`, all) + body);
    expect([200, 400, 401]).toContain(answers[0]?.status as number);
    // Where it is served, by the configured server alone.
    expect(upstream.requests).toHaveLength(answers[0]?.status === 200 ? 1 : 0);
    for (const request of upstream.requests) expect(request.head).not.toContain(trap.host);
    expect(trap.connections).toEqual([]);
  });

  // hardening: F17
  test("refuses CONNECT tunnels to clients", async () => {
    for (const target of [trap.host, trap.url, "/"]) {
      const { answers } = await raw(server.url, head(`CONNECT ${target} HTTP/1.1`, [`Host: ${trap.host}`]));
      expect([400, 404, 405]).toContain(answers[0]?.status as number);
    }
    expect(trap.connections).toEqual([]);
  });
});

describe("administration of upstream URLs", () => {
  // hardening: F33
  test("lets only operators add, test or move upstreams", async () => {
    for (const [method, path, body] of [
      ["POST", "/v1/admin/upstreams", { name: "trap", url: `${trap.url}/v1` }],
      ["POST", "/v1/admin/upstream-tests", { url: `${trap.url}/v1` }],
      ["PATCH", "/v1/admin/upstreams/up", { url: `${trap.url}/v1` }],
    ] as const) {
      const response = await server.request(path, { method, body });
      expect([path, response.status]).toEqual([path, 403]);
    }
    expect(trap.connections).toEqual([]);
  });

  // hardening: F33
  test("tests an upstream URL with only its given key, and follows no redirects", async () => {
    const operator = await makeOperatorKey(server.dataDir);
    const ask = async (body: object) => {
      const headers = { authorization: `Bearer ${operator}` };
      const response = await server.request("/v1/admin/upstream-tests", { body, headers });
      return { status: response.status, body: (await response.json()) as { ok?: boolean } };
    };
    expect(await ask({ name: "up", url: `${trap.url}/v1` })).toMatchObject({ status: 400 });
    expect(await ask({ name: "up", api_key: "x" })).toMatchObject({ status: 400 });
    expect(trap.connections).toEqual([]);
    // The one address that is called, as an operator asked for it.
    expect(await ask({ url: `${trap.url}/v1` })).toMatchObject({ status: 200, body: { ok: true } });
    expect(trap.connections).toHaveLength(1);
    expect(trap.connections[0]).not.toContain(upstreamKey);
    expect(trap.connections[0]?.toLowerCase()).not.toContain("authorization:");
    await using moved = await redirecting(`${trap.url}/v1/models`);
    expect(await ask({ url: `${moved.url}/v1`, api_key: "given-for-this-one" })).toMatchObject({
      status: 200,
      body: { ok: false },
    });
    expect([moved.asked(), trap.connections.length]).toEqual([1, 1]);
    for (const url of [
      "file:///etc/passwd",
      "ftp://127.0.0.1/",
      "gopher://127.0.0.1/",
      `http://user:pass@${trap.host}/v1`,
      "unix:/run/x",
      "javascript:1",
    ]) {
      expect([url, (await ask({ url })).status]).toEqual([url, 400]);
    }
    expect(trap.connections).toHaveLength(1);
  });

  test("sends no client key to a model server, and no upstream key to a client", async () => {
    upstream.script(
      (socket) => void socket.end(`${streamHead}data: {"error":{"message":"${upstreamKey} at ${upstream.url}"}}\n\n`),
    );
    const response = await server.request("/v1/chat/completions", { body: { ...chat, stream: true } });
    expect(await response.text()).not.toContain(upstreamKey);
    expect(upstream.requests[0]?.head).toContain(upstreamKey);
    expect(JSON.stringify(upstream.requests)).not.toContain(server.key);
  });
});

interface Redirecting extends AsyncDisposable {
  /** An origin. */
  url: string;
  asked(): number;
}

/** Leads whatever is asked of it to `location`. */
async function redirecting(location: string): Promise<Redirecting> {
  let asked = 0;
  const open = new Set<Socket>();
  const moved = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
    socket.on("data", () => {
      asked++;
      socket.write(plainAnswer(307, "{}", { Location: location }));
    });
  });
  await new Promise<void>((resolve) => moved.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(moved.address() as AddressInfo).port}`,
    asked: () => asked,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => moved.close(resolve));
    },
  };
}
