// deploy/nginx in front of two real servers: streams come piece by piece, clients keep their address, nothing is asked twice.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNginx } from "../../bench/nginx.ts";
import { tunnelProtocol } from "../../src/nodes/tunnel/contract.ts";
import { certificate } from "../support/chromium.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { freshDatabase } from "../support/postgres.ts";
import { chatScript, chunk, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const nginx = findNginx() ?? "nginx";
const directory = mkdtempSync(join(tmpdir(), "headrace-nginx-"));
let child: Bun.Subprocess;
let upstream: ScriptedUpstream;
let servers: TestServer[] = [];
let url: string;
let key: string;

/** As in deploy/, but for addresses and places of files. */
function site(name: string, replace: readonly (readonly [from: string | RegExp, to: string])[]): string {
  const text = readFileSync(join(import.meta.dir, "../../deploy/nginx", name), "utf8");
  return replace.reduce((before, [from, to]) => {
    const after = before.replaceAll(from, to);
    if (after === before) throw new Error(`${name} has no ${from}`);
    return after;
  }, text);
}

function configuration(sites: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const file = join(directory, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; pid ${directory}/pid; error_log ${directory}/error.log warn;
${process.getuid?.() === 0 ? "user root;" : ""} worker_processes 1; events { worker_connections 512; }
http { ${temporary.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join(" ")} access_log ${directory}/access.log;
${sites} }`,
  );
  return file;
}

const run = (file: string, ...more: string[]) =>
  Bun.spawn([nginx, "-c", file, "-p", directory, "-e", join(directory, "error.log"), ...more], { stderr: "pipe" });

async function freePort(): Promise<number> {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = server;
  await server.stop(true);
  return port;
}

const snippet = [/include \S+;/g, `include ${join(directory, "headrace-proxy.conf")};`] as const;

beforeAll(async () => {
  copyFileSync(join(import.meta.dir, "../../deploy/nginx/headrace-proxy.conf"), join(directory, "headrace-proxy.conf"));
  upstream = await startUpstream();
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const env = {
    HEADRACE_MODE: "production",
    HEADRACE_PUBLIC_URL: url,
    HEADRACE_DATABASE_URL: await freshDatabase(),
    HEADRACE_SECRET: "ab".repeat(32),
    HEADRACE_TRUSTED_PROXIES: "127.0.0.1/32",
  };
  for (const _ of [1, 2]) servers.push(await startHeadrace({ env, yaml: upstreamYaml(upstream) }));
  const [one, two] = servers;
  key = one?.key ?? "";
  const file = configuration(
    site("compose.conf", [
      ["headrace-1:7545", `127.0.0.1:${one?.port}`],
      ["headrace-2:7545", `127.0.0.1:${two?.port}`],
      ["listen 80;", `listen 127.0.0.1:${port};`],
      snippet,
    ]),
  );
  child = run(file);
  await until(
    () =>
      fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    "nginx answers",
  );
}, 30_000);

afterAll(async () => {
  child?.kill("SIGTERM");
  await child?.exited;
  for (const server of servers) await server[Symbol.asyncDispose]();
  servers = [];
  await upstream[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
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

test("each piece of a stream is with the client before the next one is made", async () => {
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

test("either server answers the same key", async () => {
  for (let sent = 0; sent < 8; sent++) await (await ask()).arrayBuffer();
  for (const server of servers) expect(chatsAt(server).some(({ status }) => status === 200)).toBe(true);
});

test("both know the client's address: not that of nginx, nor the one that the client claims to have", async () => {
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

test("a body larger than nginx would take by itself arrives, and no link of ours is in a log of nginx", async () => {
  const answer = await ask({ messages: [{ role: "user", content: "a".repeat(3_000_000) }] });
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  await (await fetch(`${url}/reset/rst_secret`)).arrayBuffer();
  for (const name of ["access.log", "error.log"])
    expect(readFileSync(join(directory, name), "utf8")).not.toContain("rst_secret");
});

test("a node's WebSocket is opened through it", async () => {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/node/connect`, [tunnelProtocol]);
  const opened = await new Promise((resolve) => {
    socket.onopen = () => resolve(true);
    socket.onerror = () => resolve(false);
  });
  socket.close();
  expect(opened).toBe(true);
});

test("the site with TLS is one that nginx takes", async () => {
  writeFileSync(join(directory, "cert.pem"), certificate.cert);
  writeFileSync(join(directory, "key.pem"), certificate.key);
  const file = configuration(
    site("headrace.conf", [
      [/\/etc\/ssl\/headrace\/fullchain\.pem/g, join(directory, "cert.pem")],
      [/\/etc\/ssl\/headrace\/privkey\.pem/g, join(directory, "key.pem")],
      snippet,
    ]),
  );
  const checked = run(file, "-t");
  const said = await new Response(checked.stderr).text();
  expect(await checked.exited, said).toBe(0);
});

test("a completion that fails after it was sent is not asked for again at the other server", async () => {
  const before = chats().length;
  upstream.script((_request, res) => void res.socket?.destroy());
  const answer = await ask();
  expect(answer.status).toBeGreaterThanOrEqual(500);
  await answer.arrayBuffer();
  expect(chats().length - before).toBe(1);
  upstream.script(chatScript());
});
