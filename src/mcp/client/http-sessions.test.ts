import { heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { until } from "../../../tests/support/headrace.ts";
import { callerOf, exchangeFor, LinkWorld, textOf } from "../../../tests/support/link-world.ts";
import { startMcpServer } from "../../../tests/support/mcp/mcp-server.ts";
import {
  HttpMcpServer,
  mcpServer,
  mcpServerAt,
  type ToolWork,
  textResult,
} from "../../../tests/support/mcp-servers.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { toolProtocolVersions } from "../../domain/tools/mcp-server.ts";
import type { ToolConnections } from "../../domain/tools/tool-connection.ts";

const raw = { "~standard": { version: 1, vendor: "raw", validate: (value: unknown) => ({ value }) } } as const;
const forever = () => new Promise<never>(() => {});
const strange = {
  content: [{ type: "hologram", deep: { a: [1, { b: 2 }] } }],
  vendor: { c: 3 },
  structuredContent: { d: 4 },
};

const tools: Record<string, ToolWork> = {
  strange: async () => strange,
  text: async () => textResult("fine"),
  task: async () => ({ resultType: "task", task: { taskId: "t1", status: "working" } }),
  progress: async (_params, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 0; progress < 6 && progressToken !== undefined; progress++) {
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 6 } });
      await Bun.sleep(60);
    }
    return textResult("done");
  },
  hang: async (_params, { mcpReq }) => {
    mcpReq.signal.addEventListener("abort", () => aborted.push(mcpReq.method));
    return await forever();
  },
  capabilities: async (_params, { mcpReq }) => textResult(JSON.stringify(mcpReq.envelope ?? {})),
  ask: async ({ arguments: _ }, { mcpReq }) => {
    await Bun.sleep(30);
    const params = { message: "Who?", requestedSchema: { type: "object", properties: {} } };
    return textResult(JSON.stringify(await mcpReq.send({ method: "elicitation/create", params }, raw)));
  },
  big: async () => textResult("x".repeat(300_000)),
};
const aborted: string[] = [];
const page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";

test("accepts 1,000 resource subscriptions on a shared connection, and refuses another", async () => {
  await using server = new HttpMcpServer({ isLegacy: false, tools });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url, { sharing: "all" }));
  const subscribe = (uri: string) => link.request("resources/subscribe", { uri }, exchangeFor());
  for (let one = 0; one < 200; one++) expect(await subscribe(`note:${one}`)).toEqual({ result: {} });
  for (let one = 0; one < 800; one++) expect(await subscribe(`other:${one}`)).toEqual({ result: {} });
  expect(await subscribe("other:800")).toMatchObject({ error: { code: -32_602 } });
});

test.each(toolProtocolVersions)(
  "speaks only the pinned revision %s with an MCP server that supports other revisions as well",
  async (revision) => {
    await using server = startMcpServer(() => mcpServer(tools));
    await using world = new LinkWorld();
    const link = await world.open(mcpServerAt(server.url, { protocolVersion: revision }));
    expect(link.revision).toBe(revision);
    expect(await link.request("tools/call", { name: "text" }, exchangeFor())).toMatchObject({
      result: textResult("fine"),
    });
    const methods = server.requests.map(({ body }) => (body === "" ? "" : JSON.parse(body).method));
    expect(methods.includes("initialize")).toBe(revision !== "2026-07-28");
    expect(methods.includes("server/discover")).toBe(revision === "2026-07-28");
  },
);

test.each([
  [true, "2026-07-28"],
  [false, "2025-11-25"],
] as const)("refuses a server that does not speak the revision it is set to", async (isLegacy, protocolVersion) => {
  await using server = new HttpMcpServer({ isLegacy, tools });
  await using world = new LinkWorld();
  await expect(world.open(mcpServerAt(server.url, { protocolVersion }))).rejects.toMatchObject({
    code: "upstream_error",
    message: expect.stringContaining(`does not speak revision ${protocolVersion}`),
    detail: expect.any(String),
  });
});

describe.each(toolProtocolVersions)("a server that is set to %s", (protocolVersion) => {
  test.each([404, 429, 500, 503])("reports status %i of an MCP server that answers with it", async (status) => {
    const before = () => new Response("not now", { status });
    await using server = new HttpMcpServer({ before });
    await using world = new LinkWorld();
    await expect(world.open(mcpServerAt(server.url, { protocolVersion }))).rejects.toMatchObject({
      code: "upstream_error",
      message: expect.stringContaining(`answered with status ${status}`),
      detail: expect.any(String),
    });
  });

  test.each([
    ["breaks off its answers", (socket: Socket) => socket.once("data", () => socket.destroy())],
    ["answers with pages", (socket: Socket) => socket.once("data", () => socket.end(page))],
  ])("does not report a missing revision for an MCP server that %s", async (_, answer) => {
    await using server = createServer(answer).listen(0, "127.0.0.1");
    await once(server, "listening");
    await using world = new LinkWorld();
    const { port } = server.address() as AddressInfo;
    const opened = world.open(mcpServerAt(`http://127.0.0.1:${port}/mcp`, { protocolVersion }));
    await expect(opened).rejects.toMatchObject({
      code: "upstream_error",
      message: expect.not.stringContaining("does not speak"),
    });
  });
});

test("refuses a server that answers with another revision than the pinned one", async () => {
  const result = { protocolVersion: "2025-03-26", capabilities: {}, serverInfo: { name: "old", version: "1" } };
  const before = async (request: Request) => {
    const { id, method } = (await request.clone().json()) as JsonObject;
    return method === "initialize"
      ? Response.json({ jsonrpc: "2.0", id, result })
      : new Response(null, { status: 202 });
  };
  await using server = new HttpMcpServer({ isLegacy: true, tools, before });
  await using world = new LinkWorld();
  await expect(world.open(mcpServerAt(server.url, { protocolVersion: "2025-06-18" }))).rejects.toMatchObject({
    message: expect.stringContaining("does not speak revision 2025-06-18: it answers in 2025-03-26"),
  });
});

for (const isLegacy of [false, true]) {
  const era = isLegacy ? "with sessions" : "without sessions";
  describe(`a server ${era}`, () => {
    test("detects the server's revision once", async () => {
      await using server = new HttpMcpServer({ isLegacy, tools });
      await using world = new LinkWorld();
      const link = await world.open(mcpServerAt(server.url));
      expect(link).toMatchObject({
        isLegacy,
        revision: isLegacy ? "2025-11-25" : "2026-07-28",
        instructions: "Ask away.",
      });
      expect(link.serverInfo).toMatchObject({ name: "fixture" });
      await world.call(mcpServerAt(server.url), "text");
      await world.call(mcpServerAt(server.url), "text", { key: "key_2" });
      expect(server.count("server/discover")).toBe(isLegacy ? 1 : 2);
      expect(server.count("initialize")).toBe(isLegacy ? 2 : 0);
    });

    test("keeps nothing of finished calls at the connection", async () => {
      await using server = new HttpMcpServer({ isLegacy, tools });
      await using world = new LinkWorld();
      const signals = () => {
        Bun.gc(true);
        return heapStats().objectTypeCounts["AbortSignal"] ?? 0;
      };
      const call = () => world.call(mcpServerAt(server.url), "text");
      for (let times = 0; times < 10; times++) await call();
      const before = signals();
      for (let times = 0; times < 300; times++) await call();
      // Objects of the last event-loop ticks are still reachable.
      expect(signals() - before).toBeLessThan(100);
    });

    test("passes an MCP server's results and errors on unchanged, including unknown forms", async () => {
      await using server = new HttpMcpServer({ isLegacy, tools });
      await using world = new LinkWorld();
      expect(await world.call(mcpServerAt(server.url), "strange")).toMatchObject({ result: strange });
      expect(await world.call(mcpServerAt(server.url), "nothing")).toEqual({
        error: { code: -32_602, message: "Unknown tool", data: { seen: true } },
      });
      if (!isLegacy)
        expect(await world.call(mcpServerAt(server.url), "task")).toMatchObject({ result: { resultType: "task" } });
      const list = await (await world.open(mcpServerAt(server.url))).request("tools/list", {}, exchangeFor());
      expect(list).toMatchObject({
        result: { tools: expect.arrayContaining([expect.objectContaining({ "x-unknown": [1] })]) },
      });
    });

    test("prolongs a call on progress, and reports progress with the caller's token", async () => {
      await using server = new HttpMcpServer({ isLegacy, tools });
      await using world = new LinkWorld();
      const received: unknown[] = [];
      const link = await world.open(mcpServerAt(server.url, { timeoutMs: 250 }));
      const params = { name: "progress", _meta: { progressToken: 7 } };
      const answer = await link.request(
        "tools/call",
        params,
        exchangeFor({
          notified: (_method, { progressToken, progress }) => void received.push([progressToken, progress]),
        }),
      );
      expect(textOf(answer)).toBe("done");
      expect(received).toEqual([0, 1, 2, 3, 4, 5].map((progress) => [7, progress]));
    });

    test("times out a call that gets no response, and cancels it at the MCP server", async () => {
      await using server = new HttpMcpServer({ isLegacy, tools });
      await using world = new LinkWorld();
      aborted.length = 0;
      const late = world.call(mcpServerAt(server.url, { timeoutMs: 150 }), "hang");
      await expect(late).rejects.toMatchObject({ code: "upstream_timeout" });
      await until(() => aborted.length === 1, "the server was told");
    });

    test("notifies the server when the caller disconnects", async () => {
      await using server = new HttpMcpServer({ isLegacy, tools });
      await using world = new LinkWorld();
      aborted.length = 0;
      const cancellation = new Cancellation();
      const left = world.call(mcpServerAt(server.url), "hang", { cancellation });
      await until(() => server.count("tools/call") === 1, "it was asked");
      cancellation.cancel(new Error("left"));
      await expect(left).rejects.toThrow("left");
      await until(() => aborted.length === 1, "the server was told");
    });

    test("refuses a result over the size bound, and releases its reserved bytes", async () => {
      await using server = new HttpMcpServer({ isLegacy, tools });
      await using world = new LinkWorld();
      const before = bufferedBytes.byKind.answers;
      await expect(world.call(mcpServerAt(server.url), "big")).rejects.toThrow("more than 100000 bytes");
      expect(textOf(await world.call(mcpServerAt(server.url), "text"))).toBe("fine");
      await until(() => bufferedBytes.byKind.answers === before, "all bytes were given back");
    });

    test("notifies listeners of changes until they stop listening", async () => {
      await using server = new HttpMcpServer({
        isLegacy,
        tools: {
          ...tools,
          change: async (_p, _c, own) => {
            await own.sendToolListChanged();
            return textResult("changed");
          },
        },
      });
      await using world = new LinkWorld();
      const link = await world.open(mcpServerAt(server.url));
      const received: string[] = [];
      const stop = link.onChange((method) => received.push(method));
      await until(
        () =>
          isLegacy
            ? server.requests.some(({ method }) => method === "GET")
            : server.count("subscriptions/listen") === 1,
        "it listens",
      );
      const change = () =>
        isLegacy ? world.call(mcpServerAt(server.url), "change") : server.modern.notify.toolsChanged();
      await until(async () => {
        await change();
        await Bun.sleep(20);
        return received.length > 0;
      }, "it was told");
      expect(new Set(received)).toEqual(new Set(["notifications/tools/list_changed"]));
      stop();
      const before = received.length;
      await change();
      await Bun.sleep(50);
      expect(received).toHaveLength(before);
    });
  });
}

test("sends the calling client's capabilities with each request", async () => {
  await using server = new HttpMcpServer({ tools });
  await using world = new LinkWorld();
  const own = async (clientCapabilities: Record<string, unknown>) =>
    JSON.parse(textOf(await world.call(mcpServerAt(server.url), "capabilities", { clientCapabilities })));
  const key = "io.modelcontextprotocol/clientCapabilities";
  expect((await own({ elicitation: { form: {} } }))[key]).toEqual({ elicitation: { form: {} } });
  expect((await own({}))[key]).toEqual({});
});

test("routes server requests to their own call while several run in one session", async () => {
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld();
  const at = mcpServerAt(server.url, { sharing: "all" });
  const asking = [..."abcdef"].map(async (content) =>
    JSON.parse(
      textOf(
        await world.call(at, "ask", {
          key: `key_${content}`,
          asked: async () => ({ action: "accept", content: { content } }),
        }),
      ),
    ),
  );
  expect((await Promise.all(asking)).map((got) => got.content.content)).toEqual([..."abcdef"]);
  expect(server.count("initialize")).toBe(1);
});

test("starts one new session after the server has lost the old one, and completes the call", async () => {
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url));
  server.sessions.clear();
  expect(textOf(await link.request("tools/call", { name: "text" }, exchangeFor()))).toBe("fine");
  expect(server.count("initialize")).toBe(2);
});

describe("the replacement of a forgotten session", () => {
  const rpcError = (code: number, message: string, id: unknown = null) =>
    JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id });
  test.each<[string, number, string]>([
    ["404 without a body", 404, ""],
    ["410", 410, "Gone"],
    ["400 without a body", 400, ""],
    ["400 with an error for no request", 400, rpcError(-32_000, "Bad Request: No valid session ID provided")],
    ["400 in plain text", 400, "Invalid session ID"],
    ["400 in HTML", 400, "<html>Bad Request</html>"],
    ["an error for the request that names the session", 400, rpcError(-32_001, "Session not found", "call-1")],
    ["422 that names the session", 422, "Unexpected message, expect initialize request: unknown session"],
  ])("replaces a forgotten session if the server answers %s", async (_, status, body) => {
    const forgotten = new Set<string>();
    await using server = new HttpMcpServer({
      ...{ isLegacy: true, tools },
      before: (request) =>
        forgotten.has(request.headers.get("mcp-session-id") ?? "") ? new Response(body, { status }) : undefined,
    });
    await using world = new LinkWorld();
    const link = await world.open(mcpServerAt(server.url));
    for (let restart = 1; restart <= 3; restart++) {
      for (const id of server.sessions.keys()) forgotten.add(id);
      expect(textOf(await link.request("tools/call", { name: "text" }, exchangeFor()))).toBe("fine");
      expect(server.count("initialize")).toBe(1 + restart);
    }
  });
});

test("reports a refusal if the server still knows the session, and makes the next call in it", async () => {
  let isRefusing = true;
  const refusal = JSON.stringify({ jsonrpc: "2.0", error: { code: -32_602, message: "No such argument." }, id: null });
  await using server = new HttpMcpServer({
    ...{ isLegacy: true, tools },
    before: async (request) =>
      isRefusing && (await request.clone().text()).includes("tools/call")
        ? new Response(refusal, { status: 400 })
        : undefined,
  });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url));
  for (let call = 0; call < 4; call++) {
    const answer = await link.request("tools/call", { name: "text" }, exchangeFor());
    expect(answer).toMatchObject({ error: { code: -32_602, message: "No such argument." } });
  }
  isRefusing = false;
  expect(textOf(await link.request("tools/call", { name: "text" }, exchangeFor()))).toBe("fine");
  expect(server.count("initialize")).toBe(1);
});

test.each([
  ["names no request", JSON.stringify({ jsonrpc: "2.0", error: { code: -32_602, message: "No such tab." }, id: null })],
  ["is plain text", "No such argument"],
  ["names a session of its own", "Unknown browser session"],
])("keeps the shared session after a refusal that %s", async (_, body) => {
  await using server = new HttpMcpServer({
    ...{ isLegacy: true, tools },
    before: async (request) =>
      (await request.clone().text()).includes("refused") ? new Response(body, { status: 400 }) : undefined,
  });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url));
  const refused = () => link.request("tools/call", { name: "text", arguments: { refused: 1 } }, exchangeFor());
  const results = await Promise.allSettled(Array.from({ length: 5 }, refused));
  for (const result of results) {
    const said = result.status === "fulfilled" ? JSON.stringify(result.value) : String(result.reason);
    expect(said).toMatch(/No such tab|status 400/);
  }
  expect(textOf(await link.request("tools/call", { name: "text" }, exchangeFor()))).toBe("fine");
  expect(server.count("initialize")).toBe(1);
  expect(server.count("tools/call")).toBe(results.length + 1);
});

test("fails a call of several requests whose session is lost between them, without repeating it", async () => {
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url));
  const next = async () => {
    server.sessions.clear();
    return { method: "tools/call", params: { name: "text" } };
  };
  await expect(link.request("tools/call", { name: "text" }, { ...exchangeFor(), next })).rejects.toMatchObject({
    code: "upstream_error",
  });
  expect(server.count("tools/call")).toBe(2);
});

test("waits for a task's result as long as a call may last, although the server is silent until then", async () => {
  await using server = new HttpMcpServer({
    isLegacy: true,
    async before(request) {
      const { method, id } = request.method === "POST" ? ((await request.clone().json()) as JsonObject) : {};
      if (method !== "tasks/result") return undefined;
      await Bun.sleep(600);
      return Response.json({ jsonrpc: "2.0", id, result: textResult("done") });
    },
  });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url, { timeoutMs: 200 }));
  expect(textOf(await link.request("tasks/result", { taskId: "t1" }, exchangeFor()))).toBe("done");
});

test("refuses redirects to another origin, and sends no headers there", async () => {
  let reached = 0;
  await using inside = new HttpMcpServer({
    before: () => {
      reached++;
      return undefined;
    },
  });
  for (const status of [302, 307, 308]) {
    await using server = new HttpMcpServer({
      before: () => new Response(null, { status, headers: { location: inside.url } }),
    });
    await using world = new LinkWorld();
    const at = mcpServerAt(server.url, { credentials: { kind: "headers", headers: { "X-Key": "secret" } } });
    await expect(world.open(at)).rejects.toMatchObject({ code: "upstream_error" });
  }
  expect(reached).toBe(0);
});

test("sends fixed headers to the server, but none that would replace a header of the protocol", async () => {
  await using server = new HttpMcpServer({ tools });
  await using world = new LinkWorld();
  const headers = { Authorization: "Bearer fixed", "Content-Type": "text/plain" };
  await world.call(mcpServerAt(server.url, { credentials: { kind: "headers", headers } }), "text");
  for (const { headers: sent } of server.requests) {
    expect(sent.get("authorization")).toBe("Bearer fixed");
    expect(sent.get("content-type")).toBe("application/json");
  }
});

test("gives each user a connection and token, refreshes a refused token once, and says where to connect a missing account", async () => {
  const refused: string[] = [];
  const connections: ToolConnections = {
    accessToken: async (_server, { personId }) =>
      personId === "person_none" ? undefined : `${personId}-${refused.length}`,
    refused: async (_server, _of, token) => void refused.push(token),
    connectionId: async (_server, { personId }) => personId,
    insufficient: async () => {},
  };
  const isGood = (request: Request) =>
    ["Bearer person_1-1", "Bearer person_2-1"].includes(request.headers.get("authorization") ?? "");
  await using server = new HttpMcpServer({
    tools,
    before: (request) => (isGood(request) ? undefined : new Response(null, { status: 401 })),
  });
  await using world = new LinkWorld({ connections });
  const at = mcpServerAt(server.url, {
    credentials: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null },
    sharing: "all",
  });
  expect(textOf(await world.call(at, "text", { key: "key_1" }))).toBe("fine");
  expect(refused).toEqual(["person_1-0"]);
  expect(textOf(await world.call(at, "text", { key: "key_2" }))).toBe("fine");
  expect(world.links.counts.links).toBe(2);
  for (let time = 0; time < 3; time++) {
    const missing = world.call(at, "text", { key: "key_none" });
    await expect(missing).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("https://gateway.example/dashboard/tools/files"),
    });
  }
});

test("opens a new session after a user connected another account, and no longer uses the former one", async () => {
  let account = "tcn_1";
  const connections: ToolConnections = {
    connectionId: async () => account,
    accessToken: async () => account,
    refused: async () => {},
    insufficient: async () => {},
  };
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld({ connections });
  const at = mcpServerAt(server.url, {
    credentials: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null },
  });
  const sessions = async () => {
    await world.call(at, "text", { key: "key_1" });
    const calls = server.requests.filter(({ body }) => body["method"] === "tools/call");
    return calls.map(({ headers }) => headers.get("mcp-session-id"));
  };
  await sessions();
  const [first, again] = await sessions();
  expect(again).toBe(first ?? null);
  account = "tcn_2";
  const [, , other] = await sessions();
  expect(other).toBeString();
  expect(other).not.toBe(first ?? null);
});

test("asks a user to connect again when scopes are missing, but not if the server uses fixed headers", async () => {
  const wanted: string[][] = [];
  const connections: ToolConnections = {
    accessToken: async () => "token_1",
    refused: async () => {},
    connectionId: async () => "tcn_1",
    insufficient: async (server, { personId }, token, scope) => void wanted.push([server, personId, token, scope]),
  };
  const challenge = 'Bearer error="insufficient_scope", scope="files:read files:write"';
  await using server = new HttpMcpServer({
    tools,
    before: async (request) =>
      (await request.clone().text()).includes('"tools/call"')
        ? new Response(null, { status: 403, headers: { "www-authenticate": challenge } })
        : undefined,
  });
  await using world = new LinkWorld({ connections });
  const personal = mcpServerAt(server.url, {
    credentials: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null },
  });
  await expect(world.call(personal, "text", { key: "key_1" })).rejects.toMatchObject({
    code: "permission_denied",
    message: expect.stringContaining("so connect your account there anew, at https://gateway.example/dashboard/tools/"),
  });
  expect(wanted).toEqual([["files", "person_1", "token_1", "files:read files:write"]]);
  const fixed = mcpServerAt(server.url, { credentials: { kind: "headers", headers: { "x-key": "1" } } });
  await expect(world.call(fixed, "text")).rejects.toMatchObject({ code: "upstream_error" });
});

const hostile: Record<string, () => Response> = {
  "half JSON": () => Response.json({}, { headers: { "content-length": "2" } }),
  "an answer to nobody": () => Response.json({ jsonrpc: "2.0", id: "wrong", result: {} }),
  "no answer at all": () => new Response(null, { status: 202 }),
  "a page": () => new Response("<html>", { headers: { "content-type": "text/html" } }),
  "a stream that ends": () => new Response("event: message\n\n", { headers: { "content-type": "text/event-stream" } }),
  "a stream of nonsense": () =>
    new Response("data: {nonsense}\n\n", { headers: { "content-type": "text/event-stream" } }),
  "a fault": () => new Response("x".repeat(1_000), { status: 500 }),
  compressed: () =>
    new Response(Bun.gzipSync(Buffer.alloc(10_000_000)), {
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
    }),
  "an endless event": () =>
    new Response(endless("x".repeat(10_000)), { headers: { "content-type": "text/event-stream" } }),
  "endless events": () =>
    new Response(endless(": nothing\n\n".repeat(500)), { headers: { "content-type": "text/event-stream" } }),
  "endless JSON": () => new Response(endless(" ".repeat(10_000)), { headers: { "content-type": "application/json" } }),
};

function endless(piece: string): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode(piece));
      await Bun.sleep(0);
    },
  });
}

for (const [what, response] of Object.entries(hostile)) {
  test(`${what} fails that call at once, and no other`, async () => {
    let isHostile = false;
    await using server = new HttpMcpServer({ tools, before: () => (isHostile ? response() : undefined) });
    await using world = new LinkWorld();
    const at = mcpServerAt(server.url, { timeoutMs: 20_000 });
    await world.open(at);
    const before = bufferedBytes.byKind.answers;
    isHostile = true;
    await expect(world.call(at, "text")).rejects.toMatchObject({ code: "upstream_error" });
    isHostile = false;
    expect(textOf(await world.call(at, "text"))).toBe("fine");
    await until(() => bufferedBytes.byKind.answers === before, "all bytes were given back");
  }, 10_000);
}

const inStream = { headers: { "content-type": "text/event-stream" } };

test("reads a stream whose lines end in CR LF beyond the bound of one result, because each event is shorter", async () => {
  await using server = new HttpMcpServer({
    isLegacy: true,
    tools,
    before: async (request) => {
      const { id, method } = request.method === "POST" ? await request.clone().json() : {};
      if (method !== "tools/call") return undefined;
      const note = `data: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/x", params: { text: "x".repeat(2_000) } })}`;
      const answer = `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: textResult("fine") })}`;
      return new Response([...Array.from({ length: 100 }, () => note), answer, ""].join("\r\n\r\n"), inStream);
    },
  });
  await using world = new LinkWorld();
  expect(textOf(await world.call(mcpServerAt(server.url, { timeoutMs: 25_000 }), "text"))).toBe("fine");
}, 30_000);

test("counts the streams that continue a response with it, so that a server cannot send without end", async () => {
  let streams = 0;
  await using server = new HttpMcpServer({
    isLegacy: true,
    tools,
    before: async (request) => {
      const { method } = request.method === "POST" ? await request.clone().json() : {};
      if (method !== "tools/call" && request.headers.get("last-event-id") === null) return undefined;
      streams++;
      return new Response(`id: e\nretry: 0\ndata: \n\n${`: ${"x".repeat(2_000)}\n\n`.repeat(100)}`, inStream);
    },
  });
  await using world = new LinkWorld();
  const call = world.call(mcpServerAt(server.url, { timeoutMs: 25_000 }), "text");
  await expect(call).rejects.toMatchObject({ code: "upstream_error", message: expect.stringContaining("more than") });
  expect(streams).toBe(2);
}, 30_000);

test("refuses a response of more messages than anybody sends at once", async () => {
  await using server = new HttpMcpServer({
    isLegacy: true,
    tools,
    before: async (request) => {
      const { id, method } = request.method === "POST" ? await request.clone().json() : {};
      const pings = Array.from({ length: 100 }, (_, at) => ({ jsonrpc: "2.0", id: at, method: "ping" }));
      const answer = { jsonrpc: "2.0", id, result: textResult("fine") };
      return method === "tools/call" ? Response.json([...pings, answer]) : undefined;
    },
  });
  await using world = new LinkWorld();
  await expect(world.call(mcpServerAt(server.url, { timeoutMs: 25_000 }), "text")).rejects.toMatchObject({
    code: "upstream_error",
  });
  expect(server.requests.filter(({ body }) => "result" in body)).toEqual([]);
}, 30_000);

test("ends the connection to a server that sends notifications without end, in one stream after another", async () => {
  let streams = 0;
  await using server = new HttpMcpServer({
    isLegacy: true,
    tools,
    before: (request) => {
      if (request.method !== "GET") return undefined;
      streams++;
      // The type is not that of a stream, but the SDK's client reads it as one.
      const headers = { "content-type": "text/plain" };
      return new Response(`id: e\nretry: 0\ndata: \n\n${": x\n\n".repeat(streams > 5 ? 0 : 90)}`, { headers });
    },
  });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url));
  await until(() => streams === 5, "the fifth stream was opened");
  // The fifth stream exceeds the bound, so the next request begins another session.
  await until(async () => {
    await link.request("tools/call", { name: "text", arguments: {} }, exchangeFor()).catch(() => {});
    return server.count("initialize") === 2;
  }, "another session was begun");
}, 30_000);

test("ends a slow endless response when the call's time is up", async () => {
  let isHostile = false;
  const drip = () =>
    new ReadableStream({
      async pull(controller) {
        controller.enqueue(new TextEncoder().encode(" "));
        await Bun.sleep(20);
      },
    });
  await using server = new HttpMcpServer({
    tools,
    before: () => (isHostile ? new Response(drip(), { headers: { "content-type": "application/json" } }) : undefined),
  });
  await using world = new LinkWorld();
  const at = mcpServerAt(server.url, { timeoutMs: 200 });
  await world.open(at);
  isHostile = true;
  await expect(world.call(at, "text")).rejects.toMatchObject({ code: "upstream_timeout" });
});

test.each([true, false])("keeps nothing of a finished call at its session (sessions: %p)", async (isLegacy) => {
  await using server = new HttpMcpServer({ isLegacy, tools });
  await using world = new LinkWorld();
  const at = mcpServerAt(server.url);
  const call = async (times: number) => {
    for (let time = 0; time < times; time++) await world.call(at, "text");
    server.requests.length = 0;
    Bun.gc(true);
    return heapStats().objectTypeCounts["AbortSignal"] ?? 0;
  };
  const before = await call(20);
  expect((await call(300)) - before).toBeLessThan(100);
});

test("connects once for all callers that wait for a server", async () => {
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld();
  const at = mcpServerAt(server.url, { sharing: "all" });
  await Promise.all(Array.from({ length: 20 }, (_, i) => world.call(at, "text", { key: `key_${i}` })));
  expect(server.count("initialize")).toBe(1);
});

// long-lived: mcpLink.total
test("ends the oldest idle session to make room, and asks callers to retry when none is idle", async () => {
  await using server = new HttpMcpServer({ tools });
  await using world = new LinkWorld({ bounds: { maxOfServer: 2 } });
  const at = mcpServerAt(server.url);
  const stop = (await world.open(at, "key_1")).onChange(() => {});
  await world.open(at, "key_2");
  await world.open(at, "key_3");
  expect(world.links.counts.links).toBe(2);
  const second = (await world.open(at, "key_3")).onChange(() => {});
  await expect(world.open(at, "key_4")).rejects.toMatchObject({ code: "service_unavailable", retryAfterSeconds: 2 });
  stop();
  second();
  await world.open(at, "key_4");
});

// long-lived: mcpLink.credential
test("stops using a user's connection when access ends, and closes it after the idle time", async () => {
  let account: string | undefined = "tcn_1";
  const connections: ToolConnections = {
    connectionId: async () => account,
    accessToken: async () => account,
    refused: async () => {},
    insufficient: async () => {},
  };
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld({ connections, bounds: { idleMs: 50 } });
  const at = mcpServerAt(server.url, {
    credentials: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null },
  });
  await world.call(at, "text", { key: "key_1" });
  account = undefined;
  await expect(world.call(at, "text", { key: "key_1" })).rejects.toMatchObject({ code: "permission_denied" });
  expect(server.count("tools/call")).toBe(1);
  world.clock.advance(1_000);
  await until(() => world.links.counts.links === 0, "the connection has ended");
});

// long-lived: mcpLink.idle
test("ends an idle session, and tells the server", async () => {
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld({ bounds: { idleMs: 50 } });
  await world.open(mcpServerAt(server.url));
  expect(server.sessions.size).toBe(1);
  world.clock.advance(1_000);
  await until(() => world.links.counts.links === 0, "the link has ended");
  await until(() => server.sessions.size === 0, "the session has ended");
});

test("fails open calls of a changed server, and connects to it anew", async () => {
  await using server = new HttpMcpServer({ tools });
  await using world = new LinkWorld();
  const at = mcpServerAt(server.url);
  const hanging = world.call(at, "hang");
  await until(() => server.count("tools/call") === 1, "it was asked");
  world.links.close("files");
  await expect(hanging).rejects.toMatchObject({ code: "upstream_error" });
  expect(textOf(await world.call(at, "text"))).toBe("fine");
});

test("reports a server that cannot be reached", async () => {
  await using world = new LinkWorld();
  const opening = world.links.open(mcpServerAt("http://127.0.0.1:9/mcp"), { principal: callerOf("key_1") });
  await expect(opening).rejects.toMatchObject({
    code: "upstream_error",
    message: expect.stringContaining("cannot be reached"),
  });
});

test("applies a server's changed settings from the next call on, in the same session", async () => {
  await using server = new HttpMcpServer({ tools });
  await using world = new LinkWorld();
  await world.call(mcpServerAt(server.url), "text");
  await expect(world.call(mcpServerAt(server.url, { maxResultBytes: 10 }), "text")).rejects.toThrow(
    "more than 10 bytes",
  );
  expect(world.links.counts.links).toBe(1);
});

test("fetches the rest of a response whose stream ended, if the server says how to resume", async () => {
  let id: unknown;
  await using server = new HttpMcpServer({
    isLegacy: true,
    tools,
    before: async (request) => {
      const headers = { "content-type": "text/event-stream" };
      if (request.headers.get("last-event-id") === "e1") {
        const answer = { jsonrpc: "2.0", id, result: textResult("resumed") };
        return new Response(`data: ${JSON.stringify(answer)}\n\n`, { headers });
      }
      const body = request.method === "POST" ? await request.clone().json() : {};
      if (body.method !== "tools/call") return undefined;
      id = body.id;
      return new Response("id: e1\nretry: 10\ndata: \n\n", { headers });
    },
  });
  await using world = new LinkWorld();
  expect(textOf(await world.call(mcpServerAt(server.url), "text"))).toBe("resumed");
});

test("subscribes to watched resources again after a session was lost", async () => {
  await using server = new HttpMcpServer({ isLegacy: true, tools });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url));
  await link.request("resources/subscribe", { uri: "test://a" }, exchangeFor());
  server.sessions.clear();
  await link.request("tools/call", { name: "text" }, exchangeFor());
  await until(() => server.count("resources/subscribe") === 2, "it is watched again");
});

test("reports changes of subscribed resources only, from a server without sessions", async () => {
  await using server = new HttpMcpServer({ tools });
  await using world = new LinkWorld();
  const link = await world.open(mcpServerAt(server.url));
  const received: unknown[] = [];
  link.onChange((method, params) => received.push([method, params["uri"]]));
  expect(await link.request("resources/subscribe", { uri: "test://a" }, exchangeFor())).toEqual({ result: {} });
  await until(async () => {
    server.modern.notify.resourceUpdated("test://b");
    server.modern.notify.resourceUpdated("test://a");
    await Bun.sleep(20);
    return received.length > 0;
  }, "it was told");
  expect(received).not.toContainEqual(["notifications/resources/updated", "test://b"]);
  expect(received).toContainEqual(["notifications/resources/updated", "test://a"]);
});

// long-lived: mcpLink.server
test("stops the gateway without waiting for a silent MCP server", async () => {
  const silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<never>(() => {}) });
  const world = new LinkWorld();
  const opening = world.open(mcpServerAt(`http://127.0.0.1:${silent.port}/mcp`)).catch((error: unknown) => error);
  await until(() => silent.pendingRequests === 1, "it was asked");
  const startMs = performance.now();
  await world[Symbol.asyncDispose]();
  expect(performance.now() - startMs).toBeLessThan(2_000);
  expect(await opening).toMatchObject({ code: "upstream_error" });
  await silent.stop(true);
});
