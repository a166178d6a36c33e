// deploy/nginx in front of two real servers: streams come piece by piece, clients keep their address, nothing is asked twice.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { tunnelProtocol } from "../../src/nodes/tunnel/contract.ts";
import { certificate } from "../support/chromium.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type NginxSite, prepareNginxSite } from "../support/nginx-site.ts";
import { freshDatabase } from "../support/postgres.ts";
import { chatScript, chunk, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let site: NginxSite;
let upstream: ScriptedUpstream;
let servers: TestServer[] = [];
let url: string;
let key: string;

beforeAll(async () => {
  [site, upstream] = await Promise.all([prepareNginxSite(), startUpstream()]);
  ({ url } = site);
  const env = {
    HEADRACE_MODE: "production",
    HEADRACE_PUBLIC_URL: url,
    HEADRACE_DATABASE_URL: await freshDatabase(),
    HEADRACE_SECRET: "ab".repeat(32),
    HEADRACE_TRUSTED_PROXIES: "127.0.0.1/32",
  };
  for (const _ of [1, 2]) servers.push(await startHeadrace({ env, yaml: upstreamYaml(upstream) }));
  key = servers[0]?.key ?? "";
  await site.start(servers.map(({ port }) => port));
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
  for (const server of servers) await server[Symbol.asyncDispose]();
  servers = [];
  await upstream[Symbol.asyncDispose]();
});

const hello = { model: "upstream-model", messages: [{ role: "user", content: "Hello" }] };
const ask = (body: object = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ ...hello, ...body }),
  });
const chatsAt = (server: TestServer) =>
  server.logged("request").filter(({ route }) => route === "/v1/chat/completions");
const chats = () => servers.flatMap(chatsAt);

test("delivers each piece of a stream through nginx before the next is made", async () => {
  let goOn = () => {};
  upstream.script(async (_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const word of ["one", "two", "three"]) {
      const taken = new Promise<void>((resolve) => (goOn = resolve));
      res.write(chunk({ content: word }));
      await taken;
    }
    res.write(chunk({}, "stop"));
    res.end("data: [DONE]\n\n");
  });
  const answer = await ask({ stream: true });
  const words: string[] = [];
  let text = "";
  for await (const bytes of answer.body ?? []) {
    text += Buffer.from(bytes).toString();
    for (const [, word = ""] of text.matchAll(/"content":"(one|two|three)"/g)) {
      if (words.includes(word)) continue;
      words.push(word);
      goOn();
    }
  }
  expect(words).toEqual(["one", "two", "three"]);
  expect(text).toEndWith("data: [DONE]\n\n");
  upstream.script(chatScript());
});

test("accepts the same key at both servers behind nginx", async () => {
  for (let sent = 0; sent < 8; sent++) await (await ask()).arrayBuffer();
  for (const server of servers) expect(chatsAt(server).some(({ status }) => status === 200)).toBe(true);
});

test("sees the client's address behind nginx at both servers, not nginx's or a forged one", async () => {
  const before = chats().length;
  const [body, headers] = [
    JSON.stringify(hello),
    { authorization: `Bearer ${key}`, "content-type": "application/json" },
  ];
  const status = await new Promise((resolve, reject) => {
    const options = {
      method: "POST",
      localAddress: "127.0.0.2",
      headers: { ...headers, "x-forwarded-for": "203.0.113.7" },
    };
    const request = httpRequest(`${url}/v1/chat/completions`, options, (answer) => {
      answer.resume().once("end", () => resolve(answer.statusCode));
    });
    request.once("error", reject).end(body);
  });
  expect(status).toBe(200);
  expect(chats().length - before).toBe(1);
  expect(chats().filter(({ client }) => client === "127.0.0.2").length).toBe(1);
});

test("accepts a body over nginx's default limit, and keeps sign-in links out of nginx's log", async () => {
  const answer = await ask({ messages: [{ role: "user", content: "a".repeat(3_000_000) }] });
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  await (await fetch(`${url}/reset/rst_secret`)).arrayBuffer();
  for (const name of ["access", "error"] as const) expect(site.log(name)).not.toContain("rst_secret");
});

test("opens a node's WebSocket through nginx", async () => {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/node/connect`, [tunnelProtocol]);
  const opened = await new Promise((resolve) => {
    socket.onopen = () => resolve(true);
    socket.onerror = () => resolve(false);
  });
  socket.close();
  expect(opened).toBe(true);
});

test("gives nginx a valid site with TLS", async () => {
  const [cert, privateKey] = [join(site.directory, "cert.pem"), join(site.directory, "key.pem")];
  writeFileSync(cert, certificate.cert);
  writeFileSync(privateKey, certificate.key);
  const { code, said } = await site.check(
    site.text("headrace.conf", [
      [/\/etc\/ssl\/headrace\/fullchain\.pem/g, cert],
      [/\/etc\/ssl\/headrace\/privkey\.pem/g, privateKey],
    ]),
  );
  expect(code, said).toBe(0);
});

// hardening: F30
test("does not repeat a completion at the other server if it fails after it was sent", async () => {
  const before = chats().length;
  upstream.script((_request, res) => void res.socket?.destroy());
  const answer = await ask();
  expect(answer.status).toBeGreaterThanOrEqual(500);
  await answer.arrayBuffer();
  expect(chats().length - before).toBe(1);
  upstream.script(chatScript());
});

// hardening: F30
test("returns the refusal itself if each server behind nginx refuses, and serves the next request", async () => {
  const before = chats().length;
  upstream.script((_request, res) => {
    res.writeHead(503, { "retry-after": "7", "content-type": "application/json" });
    res.end('{"error":{"message":"full"}}');
  });
  for (let sent = 0; sent < 4; sent++) {
    const answer = await ask();
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "7"]);
    expect(await answer.json()).toMatchObject({ error: { code: "service_unavailable" } });
  }
  expect(chats().length).toBeGreaterThan(before + 4);
  upstream.script(chatScript());
  expect((await ask()).status).toBe(200);
});

test("repeats a refused request with its whole body at the other server, and leaves no prompt in nginx's files", async () => {
  const [one, two] = servers;
  const messages = [{ role: "user", content: "secret prompt ".repeat(200_000) }];
  const closed = one?.close(10_000, 3_000);
  const bodies = () => upstream.requests.filter(({ body }) => JSON.stringify(body).length > 2_000_000).length;
  const before = bodies();
  let sent = 0;
  for (; sent < 6 || chatsAt(one as TestServer).every(({ status }) => status !== 503); sent++) {
    const answer = await ask({ messages });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
  }
  expect(bodies() - before).toBe(sent);
  expect(chatsAt(two as TestServer).some(({ status }) => status === 200)).toBe(true);
  await closed;
  expect((await ask()).status).toBe(200);
  expect(site.log("error")).not.toContain("buffered to a temporary file");
});
