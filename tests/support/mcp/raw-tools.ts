// A client of tools that sends what it is told to, by hand: nothing is right that the test did not make so.

export interface RawAnswer {
  status: number;
  headers: Headers;
  /** The message of JSON-RPC that came last, also out of a stream; empty: there was none. */
  message: {
    id?: unknown;
    result?: Record<string, unknown>;
    error?: { code: number; message: string; data?: unknown };
  };
  ms: number;
}

export interface RawAsk {
  key: string;
  id?: string | number;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
  /** Those that the client tells with the request. */
  capabilities?: object;
}

type Params = Readonly<Record<string, unknown>>;

/** What clients without sessions say of themselves with each request. */
export const envelope = (capabilities: object = {}): Params => ({
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": capabilities,
});

/** What such clients send as headers. */
export const modern = (method: string): Readonly<Record<string, string>> => ({
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": method,
});

/** One request of revision 2026-07-28. */
export async function askRaw(url: string, method: string, params: Params, ask: RawAsk): Promise<RawAnswer> {
  const { name, uri } = params;
  const named = name ?? uri;
  const body = { jsonrpc: "2.0", id: ask.id ?? 1, method, params: { ...params, _meta: envelope(ask.capabilities) } };
  const headers = {
    ...modern(method),
    ...(typeof named === "string" && { "mcp-name": headerText(named) }),
    ...ask.headers,
  };
  return await sendRaw(url, body, { ...ask, headers });
}

/** One call of a tool. */
export const callRaw = (url: string, name: string, ask: RawAsk): Promise<RawAnswer> =>
  askRaw(url, "tools/call", { name, arguments: {} }, ask);

/** A body as it is given. */
export async function sendRaw(url: string, body: unknown, { key, headers, signal }: RawAsk): Promise<RawAnswer> {
  const startedMs = performance.now();
  const response = await postRaw(url, body, { key, ...(headers && { headers }), ...(signal && { signal }) });
  const text = await response.text();
  const { status, headers: reported } = response;
  return { status, headers: reported, message: lastMessage(text), ms: performance.now() - startedMs };
}

export function postRaw(url: string, body: unknown, { key, headers, signal }: RawAsk): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal && { signal }),
  });
}

export interface RawSession {
  id: string;
  ask(method: string, params?: Params, more?: Partial<RawAsk>): Promise<RawAnswer>;
  /** The stream of what it is told beside any request. */
  listen(signal: AbortSignal, headers?: Readonly<Record<string, string>>): Promise<Response>;
  end(): Promise<Response>;
}

/** A session of revision 2025-11-25. Rejects where there is none. */
export async function beginRaw(url: string, key: string, capabilities: object = {}): Promise<RawSession> {
  const params = { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "raw", version: "1" } };
  const begun = await sendRaw(url, { jsonrpc: "2.0", id: 0, method: "initialize", params }, { key });
  const id = begun.headers.get("mcp-session-id");
  if (id === null) throw new Error(`No session: ${begun.status} ${JSON.stringify(begun.message)}`);
  return sessionRaw(url, key, id);
}

/** A session that another request began, by this key. */
export function sessionRaw(url: string, key: string, id: string): RawSession {
  let last = 0;
  const own = { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
  return {
    id,
    ask(method, params = {}, more = {}) {
      const body = { jsonrpc: "2.0", id: more.id ?? ++last, method, params };
      return sendRaw(url, body, { key, ...more, headers: { ...own, ...more.headers } });
    },
    listen: (signal, headers = {}) =>
      fetch(url, {
        headers: { authorization: `Bearer ${key}`, accept: "text/event-stream", ...own, ...headers },
        signal,
      }),
    end: () => fetch(url, { method: "DELETE", headers: { authorization: `Bearer ${key}`, ...own } }),
  };
}

function headerText(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

function lastMessage(text: string): RawAnswer["message"] {
  const lines = text.split("\n").filter((line) => line.startsWith("data:") && line.length > "data:".length + 1);
  const found = lines.at(-1)?.slice("data:".length) ?? text;
  try {
    return JSON.parse(found) as RawAnswer["message"];
  } catch {
    return {};
  }
}
