// An MCP server that does as it likes: it speaks the protocol before 2026-07-28 by hand, but for what it is told to get wrong.

export interface HostileAsked {
  id: unknown;
  /** That of the protocol, or that of HTTP where it is another one than POST. */
  method: string;
  params: Record<string, unknown>;
  request: Request;
}

/** Its answer instead of the right one; undefined: the right one. */
export type Misbehaviour = (asked: HostileAsked) => Response | undefined | Promise<Response | undefined>;

export interface HostileServer {
  url: string;
  /** Methods that it was asked for, in order. */
  asked: string[];
  /** Replaces what it gets wrong. */
  misbehave(how: Misbehaviour): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export const honestTool = { name: "echo", description: "Says it again.", inputSchema: { type: "object" } };

export function startHostileServer(how: Misbehaviour = () => undefined): HostileServer {
  let current = how;
  const asked: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      if (request.method !== "POST") {
        const wrong = await current({ id: undefined, method: request.method, params: {}, request });
        return wrong ?? new Response(null, { status: 405 });
      }
      const { id, method = "", params = {} } = (await request.json()) as Partial<HostileAsked>;
      asked.push(method);
      const wrong = await current({ id, method, params, request });
      if (wrong !== undefined) return wrong;
      if (id === undefined) return new Response(null, { status: 202 });
      const right = rightAnswers[method]?.(params);
      return right === undefined
        ? Response.json({ jsonrpc: "2.0", id, error: { code: -32601, message: "There is no such method." } })
        : answered(id, right);
    },
  });
  return {
    ...{ url: `http://127.0.0.1:${server.port}/mcp`, asked },
    misbehave(next) {
      current = next;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

const rightAnswers: Readonly<Record<string, (params: Record<string, unknown>) => object>> = {
  initialize: ({ protocolVersion }) => ({
    ...{ protocolVersion, capabilities: { tools: { listChanged: true } } },
    serverInfo: { name: "hostile", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [honestTool] }),
  "tools/call": () => toolText("Said again."),
};

export function toolText(text: string): { content: { type: "text"; text: string }[] } {
  return { content: [{ type: "text", text }] };
}

export function answered(id: unknown, result: object): Response {
  return Response.json({ jsonrpc: "2.0", id, result });
}

/** Messages as one stream; `open`: which never ends. */
export function streamed(messages: readonly object[], { open = false } = {}): Response {
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const message of messages) {
        controller.enqueue(encoder.encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`));
      }
      if (!open) controller.close();
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

/** What never ends: `piece` again and again, after `head`, with a pause where `pauseMs` says so. */
export function endless(head: string, piece: string, type = "application/json", pauseMs = 0): Response {
  const encoder = new TextEncoder();
  const bytes = encoder.encode(piece);
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(head)),
    async pull(controller) {
      await Bun.sleep(pauseMs);
      controller.enqueue(bytes);
    },
  });
  return new Response(stream, { headers: { "content-type": type } });
}

/** Only calls go wrong, so that it gets that far. */
export function inCalls(how: Misbehaviour): Misbehaviour {
  return (asked) => (asked.method === "tools/call" ? how(asked) : undefined);
}

/** The ways to go wrong in a call, none of which may harm anybody but who asks. `inward`: an address it has no business with. */
export function badCalls(inward: string): Readonly<Record<string, Misbehaviour>> {
  const result = toolText("Said again.");
  const ask = (id: unknown) => ({
    ...{ jsonrpc: "2.0", id, method: "elicitation/create" },
    params: { message: "And?", requestedSchema: { type: "object", properties: {} } },
  });
  return {
    "a body that never ends": inCalls(({ id }) =>
      endless(`{"jsonrpc":"2.0","id":${id},"result":{"x":"`, "x".repeat(65_536)),
    ),
    "an event that never ends": inCalls(() => endless("data: ", "x".repeat(65_536), "text/event-stream")),
    "events without end": inCalls(() => endless("", progressEvent, "text/event-stream", 1)),
    "a body that comes a byte at a time": inCalls(() => endless("{", " ", "application/json", 200)),
    "a stream that stays open without an answer": inCalls(() => streamed([], { open: true })),
    "a stream that ends without an answer": inCalls(() => streamed([])),
    "a redirect inward": inCalls(() => leadsTo(inward)),
    "a redirect to where clouds keep credentials": inCalls(() => leadsTo("http://169.254.169.254/latest/meta-data/")),
    "a redirect to itself, again and again": inCalls(({ request }) => leadsTo(request.url)),
    "progress without end": inCalls(({ params }) =>
      endless("", progressOf(tokenIn(params)).repeat(100), "text/event-stream"),
    ),
    "log lines without end": inCalls(() => endless("", logEvent.repeat(100), "text/event-stream")),
    "an answer to another request": inCalls(({ id }) => streamed([{ jsonrpc: "2.0", id: `${id}0`, result }])),
    "half of its JSON": inCalls(
      () => new Response('{"jsonrpc":"2.0","id":', { headers: { "content-type": "application/json" } }),
    ),
    "a page": inCalls(() => new Response("<h1>Hello</h1>", { headers: { "content-type": "text/html" } })),
    "an error of its own": inCalls(() => new Response("at Object.<anonymous> (/srv/secret.ts:1)", { status: 500 })),
    "a result that is none": inCalls(({ id }) => answered(id, [] as object)),
    "questions without end": inCalls(() =>
      streamed(
        Array.from({ length: 2_000 }, (_, at) => ask(at)),
        { open: true },
      ),
    ),
    "JSON that is very deep": inCalls(
      ({ id }) =>
        new Response(`{"jsonrpc":"2.0","id":${id},"result":{"content":${"[".repeat(200_000)}${"]".repeat(200_000)}}}`, {
          headers: { "content-type": "application/json" },
        }),
    ),
  };
}

/** The ways to go wrong in a list, beside what is wrong in a call. */
export function badLists(): Readonly<Record<string, Misbehaviour>> {
  const inLists =
    (how: Misbehaviour): Misbehaviour =>
    (asked) =>
      asked.method === "tools/list" ? how(asked) : undefined;
  const tool = (name: string) => ({ ...honestTool, name });
  let page = 0;
  return {
    "100,000 tools": inLists(({ id }) =>
      answered(id, { tools: Array.from({ length: 100_000 }, (_, at) => tool(`t${at}`)) }),
    ),
    "pages without end": inLists(({ id }) => answered(id, { tools: [honestTool], nextCursor: `page-${++page}` })),
    "pages that are slow, without end": inLists(async ({ id }) => {
      await Bun.sleep(1_000);
      return answered(id, { tools: [honestTool], nextCursor: `page-${++page}` });
    }),
    "a list that is none": inLists(({ id }) => answered(id, { tools: 17 })),
    "an error": inLists(({ id }) => Response.json({ jsonrpc: "2.0", id, error: { code: -32603, message: "No." } })),
    "a body that never ends": inLists(({ id }) =>
      endless(`{"jsonrpc":"2.0","id":"${id}","result":{"tools":[`, `${JSON.stringify(honestTool)},`.repeat(500)),
    ),
    nothing: inLists(() => streamed([], { open: true })),
  };
}

/** The ways to go wrong beside a call: as somebody connects, and on the stream of what nobody asked for. */
export const badStarts: Readonly<Record<string, Misbehaviour>> = {
  "says nothing at first": inStarts(() => streamed([], { open: true })),
  "gives a session id of 10 MB": inStarts(
    ({ id, params }) =>
      new Response(JSON.stringify({ jsonrpc: "2.0", id, result: rightAnswers["initialize"]?.(params) }), {
        headers: { "content-type": "application/json", "mcp-session-id": "x".repeat(10_000_000) },
      }),
  ),
  "speaks a revision that there is not": inStarts(({ id, params }) =>
    answered(id, { ...rightAnswers["initialize"]?.(params), protocolVersion: "2099-01-01" }),
  ),
  "says what it can do without end": inStarts(({ id }) =>
    endless(`{"jsonrpc":"2.0","id":${id},"result":{"capabilities":{"x":"`, "x".repeat(65_536)),
  ),
  "answers with a page": inStarts(() => new Response("<h1>Hi</h1>", { headers: { "content-type": "text/html" } })),
};

/** What comes on the stream that is there beside calls. */
export const badNotifications: Readonly<Record<string, Misbehaviour>> = {
  "changes of lists": inNotification(
    eventOf({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }).repeat(100),
  ),
  questions: inNotification(eventOf({ jsonrpc: "2.0", id: 1, method: "elicitation/create", params: {} }).repeat(100)),
  samples: inNotification(eventOf({ jsonrpc: "2.0", id: 1, method: "sampling/createMessage", params: {} }).repeat(100)),
  "answers to nobody": inNotification(eventOf({ jsonrpc: "2.0", id: "call-1", result: toolText("Mine.") }).repeat(100)),
  "an event without an end": inNotification("x".repeat(65_536), "data: "),
};

function inStarts(how: Misbehaviour): Misbehaviour {
  return (asked) => (asked.method === "initialize" ? how(asked) : undefined);
}

function inNotification(piece: string, head = ""): Misbehaviour {
  return ({ method }) => (method === "GET" ? endless(head, piece, "text/event-stream") : undefined);
}

function leadsTo(location: string): Response {
  return new Response(null, { status: 307, headers: { location } });
}

function tokenIn({ _meta }: Record<string, unknown>): unknown {
  return (_meta as { progressToken?: unknown } | undefined)?.progressToken;
}

function eventOf(message: object): string {
  return `data: ${JSON.stringify(message)}\n\n`;
}

function progressOf(progressToken: unknown): string {
  return eventOf({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress: 1 } });
}

const progressEvent = progressOf("x");
const logEvent = eventOf({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } });
