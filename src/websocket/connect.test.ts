// The WebSocket client: only a valid answer opens a WebSocket. Also deadlines, certificates and proxies.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "bun";
import { rawUpstream } from "../../tests/support/http1/raw-upstream.ts";
import { withinMs } from "../../tests/support/long.ts";
import { probedEnds } from "../../tests/support/probed-sockets.ts";
import {
  connectTo,
  startWebSocketServer,
  testProtocol,
  until,
} from "../../tests/support/websocket/websocket-fixture.ts";
import { ConnectError } from "./connect.ts";

async function problemOf(url: string, connectMs = 2_000, more: object = {}): Promise<string> {
  try {
    await connectTo(url, { connectMs, ...more });
    return "connected";
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return error.message;
  }
}

const accept = (request: string) => {
  const key = /sec-websocket-key: (\S+)/.exec(request)?.[1] ?? "";
  return new Bun.CryptoHasher("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
};

const answer = (fields: readonly string[]) => `${["HTTP/1.1 101 Switching Protocols", ...fields].join("\r\n")}\r\n\r\n`;
const rightFields = (request: string) => [
  "Upgrade: websocket",
  "Connection: Upgrade",
  `Sec-WebSocket-Accept: ${accept(request)}`,
  `Sec-WebSocket-Protocol: ${testProtocol}`,
];

describe("invalid answers to a WebSocket handshake", () => {
  const cases: [what: string, answer: (request: string) => string, problem: string][] = [
    ["another status", () => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered 404 instead of 101"],
    ["no HTTP", () => "SSH-2.0-x\r\n\r\n", "no HTTP"],
    ["without end", () => `HTTP/1.1 101 x\r\n${"X: y\r\n".repeat(5_000)}`, "at most 16384 bytes"],
    ["another key", (request) => answer(rightFields(`${request}x`.replace(/key: ./, "key: "))), "Accept is wrong"],
    ["no key", (request) => answer(rightFields(request).toSpliced(2, 1)), "Accept is wrong"],
    ["another upgrade", (request) => answer(rightFields(request).with(0, "Upgrade: h2c")), "something else"],
    ["no Connection: Upgrade", (request) => answer(rightFields(request).toSpliced(1, 1)), "something else"],
    [
      "another protocol",
      (request) => answer(rightFields(request).with(3, "Sec-WebSocket-Protocol: x")),
      "does not speak",
    ],
    [
      "an extension",
      (request) => answer([...rightFields(request), "Sec-WebSocket-Extensions: permessage-deflate"]),
      "an extension",
    ],
  ];
  for (const [what, given, problem] of cases) {
    test(`reports an invalid answer and ends the connection: ${what}`, async () => {
      using server = rawUpstream(({ socket }, request) => void socket.write(given(request)));
      expect(await problemOf(`http://127.0.0.1:${server.port}`)).toContain(problem);
      await until(() => server.connections[0]?.closed, "the end of the connection");
    });
  }

  test("reports a connection that ends without an answer", async () => {
    using server = rawUpstream(({ socket }) => void socket.end());
    expect(await problemOf(`http://127.0.0.1:${server.port}`)).toContain("closed the connection without an answer");
  });

  test("times out a silent server", async () => {
    using server = rawUpstream(() => {});
    const startMs = performance.now();
    expect(await problemOf(`http://127.0.0.1:${server.port}`, 100)).toContain("no connection within 100 ms");
    expect(performance.now() - startMs).toBeLessThan(withinMs(1_000));
    await until(() => server.connections[0]?.closed, "the end of the connection");
  });

  test("reports a closed port as refused", async () => {
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { port } = listener;
    listener.stop(true);
    expect(await problemOf(`http://127.0.0.1:${port}`)).toContain("ECONNREFUSED");
  });

  test("fails for a name that does not exist", async () => {
    expect(await problemOf("http://headrace.invalid")).not.toBe("connected");
  });
});

test("reads messages that arrive with the answer, also in pieces", async () => {
  using server = rawUpstream(async ({ socket }, request) => {
    const bytes = Buffer.concat([Buffer.from(answer(rightFields(request))), Buffer.from([0x82, 2, 0x68, 0x69])]);
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]));
      await Bun.sleep(0);
    }
  });
  const { link, listener } = await connectTo(`http://127.0.0.1:${server.port}`);
  await until(() => listener.messages.length === 1, "the message");
  expect(listener.messages.map(String)).toEqual(["hi"]);
  link.terminate();
});

test("ends the connection with 1002 at a masked frame of a server", async () => {
  using server = rawUpstream(({ socket }, request) => {
    socket.write(Buffer.concat([Buffer.from(answer(rightFields(request))), Buffer.from([0x82, 0x81, 0, 0, 0, 0, 1])]));
  });
  const { listener } = await connectTo(`http://127.0.0.1:${server.port}`);
  await until(() => listener.end, "the end");
  expect(listener.end?.code).toBe(1002);
});

/** Starts a proxy that answers CONNECT with `answerOf`, and relays bytes to the port `connectTo` if that is 200. */
function startProxy(connectTo: number, answerOf: (head: string) => string = () => "HTTP/1.1 200 OK\r\n\r\n") {
  interface Relayed {
    head: string;
    upstream?: Socket<{ down: Socket<Relayed> }>;
  }
  const heads: string[] = [];
  const listener = Bun.listen<Relayed>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { head: "" };
      },
      async data(socket, bytes) {
        const { data } = socket;
        if (data.upstream) {
          data.upstream.write(bytes);
          return;
        }
        data.head += bytes.toString("latin1");
        if (!data.head.endsWith("\r\n\r\n")) return;
        heads.push(data.head);
        const text = answerOf(data.head);
        if (text.startsWith("HTTP/1.1 200")) {
          data.upstream = await Bun.connect({
            hostname: "127.0.0.1",
            port: connectTo,
            data: { down: socket },
            socket: {
              data: (up, back) => void up.data.down.write(back),
              close: (up) => void up.data.down.end(),
            },
          });
        }
        socket.write(text);
      },
      close: (socket) => void socket.data.upstream?.end(),
    },
  });
  return { heads, url: new URL(`http://127.0.0.1:${listener.port}`), [Symbol.dispose]: () => listener.stop(true) };
}

describe("WebSocket connections through a proxy", () => {
  test("sends CONNECT with credentials to the proxy, and none of them to the server", async () => {
    await using server = startWebSocketServer((link, listener) => {
      listener.onMessage = (bytes) => link.send(bytes);
    });
    using proxy = startProxy(server.http.server.port);
    const withUser = new URL(proxy.url);
    withUser.username = "us%40er";
    withUser.password = "p:w";
    const { link, listener } = await connectTo("http://gateway.example:8080/v1", { proxy: withUser });
    link.send(Buffer.alloc(200_000, 1));
    await until(() => listener.messages.length === 1, "the echo");
    expect(listener.messages[0]?.length).toBe(200_000);
    expect(proxy.heads[0]).toStartWith("CONNECT gateway.example:8080 HTTP/1.1\r\nhost: gateway.example:8080\r\n");
    expect(proxy.heads[0]).toContain(`proxy-authorization: Basic ${Buffer.from("us@er:p:w").toString("base64")}`);
    expect(server.http.requests[0]?.headers.has("proxy-authorization")).toBe(false);
    expect(server.http.requests[0]?.headers.get("host")).toBe("gateway.example:8080");
    link.close(1000, "");
  });

  test("reports a proxy that refuses, or that answers too much", async () => {
    using refusing = startProxy(1, () => "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    expect(await problemOf("http://x.example", 2_000, { proxy: refusing.url })).toContain("the proxy answered 407");
    using early = startProxy(1, () => "HTTP/1.1 204 OK\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n");
    expect(await problemOf("http://x.example", 2_000, { proxy: early.url })).toContain("more than its answer");
    using wrong = startProxy(1, () => "hello\r\n\r\n");
    expect(await problemOf("http://x.example", 2_000, { proxy: wrong.url })).toContain("no HTTP");
    const secure = new URL("https://127.0.0.1:1");
    expect(await problemOf("http://x.example", 2_000, { proxy: secure })).toContain("given as http://host:port");
  });
});

describe("WebSocket connections over TLS", () => {
  let directory: string;
  let identity: { key: string; cert: string };

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "headrace-wss-"));
    const [key, cert] = [join(directory, "key"), join(directory, "cert")];
    const made = Bun.spawnSync([
      ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"],
      ...["-addext", "subjectAltName=DNS:localhost,DNS:gateway.example"],
    ]);
    if (!made.success) throw new Error(made.stderr.toString());
    identity = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  /** Starts Bun's own WebSocket server, since the gateway's speaks no TLS: a proxy in front of it does. */
  function startSecure() {
    const requests: Request[] = [];
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: identity,
      fetch(request, it) {
        requests.push(request);
        it.upgrade(request, { headers: { "sec-websocket-protocol": testProtocol } });
      },
      websocket: { message: (socket, message) => void socket.send(message) },
    });
    return { requests, port: server.port as number, [Symbol.dispose]: () => void server.stop(true) };
  }

  test("connects to a trusted server directly and through a proxy", async () => {
    using server = startSecure();
    using proxy = startProxy(server.port);
    const big = Buffer.alloc(3_000_000, 5);
    for (const [url, more] of [
      [`https://localhost:${server.port}`, {}],
      [`https://gateway.example:${server.port}`, { proxy: proxy.url }],
    ] as const) {
      const { link, listener } = await connectTo(url, { ca: identity.cert, maxMessageBytes: 4_000_000, ...more });
      link.send(Buffer.from("small"));
      link.send(big);
      await until(() => listener.messages.length === 2, "the echoes", 10_000);
      expect(listener.messages[0]?.toString()).toBe("small");
      expect(listener.messages[1]?.equals(big)).toBe(true);
      link.close(1000, "");
      await until(() => listener.end, "the end");
      expect(listener.end?.code).toBe(1000);
    }
    expect(proxy.heads[0]).toStartWith("CONNECT gateway.example:");
  });

  test("pauses a server over TLS, and delivers everything after resuming", async () => {
    using server = startSecure();
    const url = `https://localhost:${server.port}`;
    const { link, listener } = await connectTo(url, { ca: identity.cert, maxMessageBytes: 4_000_000 });
    const [count, piece] = [120, Buffer.alloc(100_000, 7)];
    listener.onMessage = () => {
      if (listener.messages.length === 1) link.pause();
    };
    for (let sent = 0; sent < count; sent++) link.send(piece);
    await until(() => listener.messages.length > 0, "the first echo");
    await Bun.sleep(200);
    // Messages that were already received are delivered; the rest stays in the kernel and at the server.
    expect(listener.messages.length).toBeLessThan(count * 0.75);
    link.resume();
    await until(() => listener.messages.length === count, "all echoes", 10_000);
    link.close(1000, "");
    await until(() => listener.end, "the end");
  });

  test("sends nothing to an untrusted or different server over TLS", async () => {
    using server = startSecure();
    using proxy = startProxy(server.port);
    for (const [url, more] of [
      [`https://localhost:${server.port}`, {}],
      [`https://127.0.0.1:${server.port}`, { ca: identity.cert }],
      [`https://other.example:${server.port}`, { ca: identity.cert, proxy: proxy.url }],
      [`https://gateway.example:${server.port}`, { proxy: proxy.url }],
    ] as const) {
      expect(await problemOf(url, 2_000, more)).toMatch(/certificate|hostname|altname|CERT|self.signed/i);
    }
    expect(server.requests).toEqual([]);
  });
});

test("does not send a header that would begin another one", async () => {
  expect(problemOf("http://127.0.0.1:1", 100, { headers: { x: "a\r\ny: b" } })).rejects.toBeInstanceOf(TypeError);
});

test.skipIf(process.platform !== "linux")("probes the server of an open WebSocket", async () => {
  await using server = startWebSocketServer();
  const { link } = await connectTo(server.url);
  await until(() => probedEnds(Number(server.url.port)).peers, "the client probes its server");
  link.close(1000, "");
});
