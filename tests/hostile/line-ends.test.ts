// Answers made of line ends alone, from a model server and from a node: whoever asks for anything else does not wait for them.
import { afterEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { makeOperatorKey } from "../../src/maintenance/operator-key.ts";
import { messageTypes, pieceBytes } from "../../src/nodes/tunnel/messages.ts";
import { until } from "../support/headrace.ts";
import { hostileNode } from "../support/hostile-node.ts";
import { long } from "../support/long.ts";
import type { RawEnd } from "../support/tunnel/raw-ends.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";
import { goodAnswer, rawYaml, startRawUpstream, streamHead } from "./raw-upstream.ts";

/** For which nobody else is served. */
const maxStallMs = 100;
/** Against an answer of the same length that is one comment after the other. */
const timesPlain = 10;
/** What is less than this is for the most part the rest of the request. */
const minCpuMs = 100;
const sizes = long ? [500_000, 5_000_000, 50_000_000] : [500_000, 5_000_000];

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

const chat = (model: string, stream: boolean) => ({ model, messages: [{ role: "user", content: "Hi" }], stream });

/** What the server's process spends on one answer of so many bytes. */
async function cpuMs(server: WatchedServer, model: string): Promise<number> {
  const spentMs = () => {
    const fields = readFileSync(`/proc/${server.pid}/stat`, "latin1")
      .replace(/^.*\) /, "")
      .split(" ");
    // In hundredths of a second (proc(5)).
    return 10 * (Number(fields[11]) + Number(fields[12]));
  };
  const before = spentMs();
  const signal = AbortSignal.timeout(120_000);
  await (await server.request("/v1/chat/completions", { body: chat(model, true), signal })).text();
  return spentMs() - before;
}

/** `send`: makes the next answer of so many bytes. */
async function expectPlainCost(server: WatchedServer, model: string, send: (line: string) => void, line: string) {
  send(`: ${"x".repeat(96)}\n\n`);
  const plainMs = Math.max(minCpuMs, await cpuMs(server, model));
  send(line);
  expect(await cpuMs(server, model)).toBeLessThan(timesPlain * plainMs);
}

/** While an answer of `model` is under way, others ask how the server is and for a chat, one after the other. */
async function costBeside(server: WatchedServer, model: string, name: string): Promise<void> {
  await server.beginAnew();
  let over = false;
  const hostile = server
    .request("/v1/chat/completions", { body: chat(model, true), signal: AbortSignal.timeout(120_000) })
    .then((response) => response.text())
    .finally(() => {
      over = true;
    });
  const tookMs: number[] = [];
  const asked = async (path: string, body?: unknown) => {
    const before = performance.now();
    const response = await server.request(path, { body });
    await response.arrayBuffer();
    expect(response.status).toBe(200);
    tookMs.push(performance.now() - before);
  };
  while (!over || tookMs.length < 20) {
    await asked("/healthz");
    await asked("/v1/chat/completions", chat("upstream-model", false));
  }
  const text = await hostile;
  const { stallMs } = await server.figures();
  console.log(`${name}: stalled for ${Math.round(stallMs)} ms; others took ${Math.round(Math.max(...tookMs))} at most`);
  expect(text).toContain('"error"');
  expect(text).not.toContain("[DONE]");
  // In the short form the processor time tells it: other work on the machine stalls a server as well.
  if (long) expect(stallMs).toBeLessThan(maxStallMs);
}

// hardening: F3
test.each(["\r", "\n", "\r\n", "data:\r"])(
  "serves others while a model server answers only with %j",
  async (line) => {
    let bytes = 5_000_000;
    let sent: string = line;
    const upstream = await started(
      startRawUpstream((socket, { body }) => {
        if (!body.includes('"stream":true')) return void socket.write(goodAnswer);
        socket.write(streamHead);
        socket.end(Buffer.alloc(bytes, sent));
      }),
    );
    const server = await started(startWatchedServer({ yaml: rawYaml(upstream) }));
    const send = (next: string) => {
      sent = next;
    };
    await expectPlainCost(server, "upstream-model", send, line);
    for (const size of sizes) {
      bytes = size;
      await costBeside(server, "upstream-model", `${size} bytes of ${JSON.stringify(line)}`);
    }
  },
  180_000,
);

// hardening: F3
test("serves others while a node answers only with CR", async () => {
  const upstream = await started(startRawUpstream((socket) => void socket.write(goodAnswer)));
  const server = await started(startWatchedServer({ yaml: rawYaml(upstream) }));
  const node = await hostileNode({ url: server.url, token: () => joinToken(server) }, "mallory", ["hostile"]);
  let bytes = 5_000_000;
  let sent = "\r";
  const end = await node.connect((it, stream) => sendLines(it, stream, Buffer.alloc(bytes, sent)));
  await until(async () => (await (await server.request("/v1/models")).text()).includes('"hostile"'), "its model");
  const send = (next: string) => {
    sent = next;
  };
  await expectPlainCost(server, "hostile", send, "\r");
  for (const size of sizes) {
    bytes = size;
    await costBeside(server, "hostile", `${size} bytes of CR from a node`);
  }
  end.link.terminate();
}, 180_000);

async function joinToken(server: WatchedServer) {
  const { key } = await makeOperatorKey({
    dataDir: server.dataDir,
    secretsHex: undefined,
    databaseUrl: undefined,
    environment: undefined,
    request: { name: "Operator", scopes: ["admin:manage"] },
    nowSeconds: Math.floor(Date.now() / 1000),
  });
  const response = await server.request("/v1/admin/node-tokens", { key, body: { approved_models: ["*"] } });
  return (await response.json()) as never;
}

/** Sends as fast as the gateway grants it. */
function sendLines(end: RawEnd, stream: number, bytes: Buffer): void {
  let creditBytes = 256 * 1024;
  let sentBytes = 0;
  const answerRequests = end.listener.onMessage;
  end.send(messageTypes.head, stream, '{"status":200,"headers":{"content-type":"text/event-stream"}}');
  const send = () => {
    while (sentBytes < bytes.length && creditBytes > 0) {
      const length = Math.min(pieceBytes, bytes.length - sentBytes, creditBytes);
      end.send(messageTypes.data, stream, bytes.subarray(sentBytes, sentBytes + length));
      sentBytes += length;
      creditBytes -= length;
    }
    if (sentBytes < bytes.length) return;
    end.listener.onMessage = answerRequests;
    end.send(messageTypes.end, stream);
  };
  end.listener.onMessage = (message) => {
    answerRequests?.(message);
    if (message[0] !== messageTypes.credit || message.readUInt32BE(1) !== stream) return;
    creditBytes += message.readUInt32BE(5);
    send();
  };
  send();
}
