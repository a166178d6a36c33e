// Bodies that are no request: broken JSON, wrong encodings, wrong sizes. Always one clear answer, never a quoted body.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { head, openRaw, raw } from "./raw-client.ts";

const canary = "CANARY-of-a-private-prompt";
const good = { model: "upstream-model", messages: [{ role: "user", content: canary }] };

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function post(body: string | Uint8Array, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json", ...headers },
    body: body as string,
  });
  const text = await response.text();
  const error = response.ok ? undefined : (JSON.parse(text) as { error: Record<string, string> }).error;
  return { status: response.status, headers: response.headers, text, error };
}

/** Everything after the opening brace of a request that would be served. */
const rest = JSON.stringify(good).slice(1);

const notJson: readonly [name: string, body: string, says: RegExp][] = [
  ["nothing", "", /empty/],
  ["blanks", " \r\n\t ", /not valid JSON|empty/],
  ["a brace", "{", /not valid JSON/],
  ["half a request", JSON.stringify(good).slice(0, -10), /not valid JSON/],
  ["half a string", '{"model":"up', /not valid JSON/],
  ["text behind it", `${JSON.stringify(good)} and ${canary}`, /not valid JSON/],
  ["two documents", JSON.stringify(good).repeat(2), /not valid JSON|appears twice/],
  ["a trailing comma", `${JSON.stringify(good).slice(0, -1)},}`, /not valid JSON/],
  ["single quotes", "{'model':'upstream-model'}", /not valid JSON/],
  ["a comment", `{/* ${canary} */${rest}`, /not valid JSON/],
  ["NaN", `{"temperature":NaN,${rest}`, /not valid JSON/],
  ["a hexadecimal number", `{"seed":0x10,${rest}`, /not valid JSON/],
  ["a leading zero", `{"seed":010,${rest}`, /not valid JSON/],
  ["a line break in a string", `{"user":"a\nb",${rest}`, /not valid JSON/],
  ["a NUL between members", `{\0${rest}`, /not valid JSON/],
  ["unquoted names", "{model:1}", /not valid JSON/],
  ["too many closing braces", `${JSON.stringify(good)}}}}}`, /not valid JSON/],
  ["null", "null", /must be a JSON object/],
  ["a list", JSON.stringify([good]), /must be a JSON object/],
  ["a list of equal texts", '["a","a","a"]', /cannot be used|must be a JSON object/],
  ["a text", JSON.stringify(canary), /must be a JSON object/],
  ["a number", "1", /must be a JSON object/],
  ["a form", `model=upstream-model&messages=${canary}`, /not valid JSON/],
  ["the same name twice", `{"model":"other",${rest}`, /`model` appears twice/],
  ["the same name twice, once hidden behind an escape", `{"mod\\u0065l":"other",${rest}`, /`model` appears twice/],
];

test.each(notJson)("refuses %s as a body without quoting it", async (_name, body, says) => {
  const { status, error } = await post(body);
  expect(status).toBe(400);
  expect(Object.keys(error ?? {}).filter((name) => name !== "param")).toEqual(["message", "type", "code"]);
  expect(error).toMatchObject({ code: "invalid_request", type: "invalid_request_error" });
  expect(error?.["message"]).toMatch(says);
  expect(error?.["message"]).not.toContain("CANARY");
  expect(upstream.requests).toHaveLength(0);
});

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

test.each([
  ["a stray byte", [0xff]],
  ["an overlong encoding", [0xc0, 0xaf]],
  ["a surrogate in UTF-8", [0xed, 0xa0, 0x80]],
  ["a character that is cut off", [0xe2, 0x82]],
])("refuses %s in a string as invalid UTF-8", async (_name, wrong) => {
  const { status, error } = await post(bytes('{"user":"', wrong, `",${rest}`));
  expect(status).toBe(400);
  expect(error?.["message"]).toMatch(/UTF-8/);
});

test("refuses UTF-16", async () => {
  expect((await post(Buffer.from(JSON.stringify(good), "utf16le"))).status).toBe(400);
});

test("accepts a byte-order mark, escapes, white space, and a lone surrogate written as an escape", async () => {
  const odd = [
    `\ufeff${JSON.stringify(good)}`,
    ` \r\n\t${JSON.stringify(good, null, "\t")}\n\n`,
    `{"mod\\u0065l":"upstream-model","messages":[{"role":"user","content":"\\ud800 \\u0000"}]}`,
    `{"constructor":1,"toString":2,${rest}`,
  ];
  for (const body of odd) {
    const { status, text } = await post(body);
    expect([status, text.slice(0, 200)]).toEqual([200, text.slice(0, 200)]);
  }
  upstream.requests.length = 0;
});

describe("nesting", () => {
  const nested = (levels: number) => `{"x":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)},${rest}`;

  // hardening: F12
  test("accepts 64 levels of nesting and refuses 65 with the limit", async () => {
    expect((await post(nested(64))).status).toBe(200);
    const { status, error } = await post(nested(65));
    expect(status).toBe(400);
    expect(error?.["message"]).toContain("64 levels");
    upstream.requests.length = 0;
  });

  // hardening: F12
  test.each([
    ["lists", "[".repeat(100_000)],
    ["closed lists", "[".repeat(100_000) + "]".repeat(100_000)],
    ["objects", '{"a":'.repeat(100_000)],
    ["objects within a request", `{"x":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)},${rest}`],
  ])("refuses 100,000 levels of %s at once", async (_name, body) => {
    const startedMs = performance.now();
    const { status, error } = await post(body);
    expect(status).toBe(400);
    expect(error?.["message"]).toContain("64 levels");
    expect(performance.now() - startedMs).toBeLessThan(withinMs(1_000));
  });
});

describe("media types", () => {
  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonx",
    "text/json-not",
    "application/xml",
    "application/",
    "json",
  ])("refuses the media type %s with 415, the expected one, and a closed connection", async (type) => {
    const { status, error, headers } = await post(JSON.stringify(good), { "content-type": type });
    expect(status).toBe(415);
    expect(error).toMatchObject({ code: "unsupported_media_type" });
    expect(error?.["message"]).toContain("application/json");
    expect(headers.get("connection")).toBe("close");
  });

  // hardening: F15
  test.each(["utf-16", "UTF-16LE", '"iso-8859-1"', "us-ascii", "", "utf-8; charset=utf-16", "'utf-8'"])(
    "refuses a body in another charset than UTF-8 with 415: charset=%s",
    async (charset) => {
      const { status, error } = await post(JSON.stringify(good), {
        "content-type": `application/json; charset=${charset}`,
      });
      expect({ status, code: error?.["code"] }).toEqual({ status: 415, code: "unsupported_media_type" });
      expect(error?.["message"]).toStartWith("Send the body as UTF-8: the header Content-Type says charset=");
      expect(upstream.requests).toHaveLength(0);
    },
  );

  test("refuses a missing media type with 415", async () => {
    const lines = ["Host: 127.0.0.1", `Authorization: Bearer ${server.key}`, "Content-Length: 2"];
    const answer = await raw(server.url, `${head("POST /v1/chat/completions HTTP/1.1", lines)}{}`);
    expect(answer.answers[0]?.status).toBe(415);
  });

  test.each([
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    "application/json;charset=UTF-8",
    "application/vnd.api+json",
  ])("accepts %s as JSON", async (type) => {
    expect((await post(JSON.stringify(good), { "content-type": type })).status).toBe(200);
    upstream.requests.length = 0;
  });

  test.each([
    ["gzip", 413],
    ["GZIP", 413],
    ["br", 400],
    ["deflate", 400],
    ["zstd", 400],
    ["gzip, identity", 415],
    ["compress", 415],
  ])("refuses a gzip bomb that claims to be %s with status %i before any model server", async (encoding, expected) => {
    const bomb = gzipSync(Buffer.alloc(40_000_000, 0x20));
    const { status, error } = await post(bomb, { "content-encoding": encoding });
    expect(status).toBe(expected);
    expect(error?.["message"]).toMatch(/Content-Encoding|unpacked/);
  });

  test("passes a gzip body to the model server as before compression", async () => {
    expect((await post(gzipSync(JSON.stringify(good)), { "content-encoding": "gzip" })).status).toBe(200);
    expect(upstream.requests).toHaveLength(1);
    upstream.requests.length = 0;
  });

  // hardening: F12
  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ] as const)(
    "refuses a %s body that is truncated or has trailing data, without reaching a model server",
    async (encoding, pack) => {
      const whole = pack(JSON.stringify(good));
      const sent = [
        whole.subarray(0, -1),
        whole.subarray(0, whole.length / 2),
        Buffer.concat([whole, Buffer.from("{}")]),
      ];
      for (const bytes of sent) {
        const { status, error } = await post(bytes, { "content-encoding": encoding });
        expect([status, error?.["message"]]).toEqual([400, expect.stringContaining("cannot be unpacked")]);
      }
      expect(upstream.requests).toHaveLength(0);
      expect((await post(whole, { "content-encoding": encoding })).status).toBe(200);
      upstream.requests.length = 0;
    },
  );

  test("treats the encoding identity as uncompressed", async () => {
    expect((await post(JSON.stringify(good), { "content-encoding": "Identity" })).status).toBe(200);
    upstream.requests.length = 0;
  });
});

describe("sizes", () => {
  const limit = 65_536;

  async function small(): Promise<TestServer> {
    return startHeadrace({ yaml: upstreamYaml(upstream, `limits: { body_bytes: ${limit} }\n`) });
  }

  const ofLength = (length: number) => {
    const shell = JSON.stringify({ ...good, user: "" }).length;
    return JSON.stringify({ ...good, x: "x".repeat(length - shell + 1) })
      .padEnd(length)
      .slice(0, length);
  };

  // hardening: F12
  test("accepts a body of exactly the limit, and refuses one byte more with 413 and the limit", async () => {
    await using gateway = await small();
    for (const [length, status] of [
      [limit, 200],
      [limit + 1, 413],
    ] as const) {
      const body = ofLength(length);
      expect(body).toHaveLength(length);
      const response = await gateway.request("/v1/chat/completions", { body });
      expect(response.status).toBe(status);
      if (status === 413) expect((await response.json()).error.message).toContain(`${limit} bytes`);
    }
    upstream.requests.length = 0;
  });

  /** Sends until the server stops taking it; gives what was sent and answered. */
  async function flood(gateway: TestServer, framing: string, piece: string) {
    const connection = await openRaw(gateway.url);
    await connection.write(
      head("POST /v1/chat/completions HTTP/1.1", [
        "Host: 127.0.0.1",
        `Authorization: Bearer ${gateway.key}`,
        "Content-Type: application/json",
        framing,
      ]),
    );
    let sent = 0;
    const limitBytes = 64 * 1024 * 1024;
    while (sent < limitBytes) {
      const taken = await Promise.race([connection.write(piece), connection.ended(2_000).then(() => false)]);
      if (!taken) break;
      sent += piece.length;
    }
    const exchange = await connection.ended(2_000);
    connection.socket.destroy();
    return { sent, exchange };
  }

  // hardening: F12
  test.each([
    ["with its Content-Length", "Content-Length: 10000000000", "x".repeat(65_536)],
    ["chunked, without a length", "Transfer-Encoding: chunked", `10000\r\n${"x".repeat(65_536)}\r\n`],
  ])("refuses an oversized upload %s with 413, and closes without reading the rest", async (_name, framing, piece) => {
    await using gateway = await small();
    const before = process.memoryUsage.rss();
    const { sent, exchange } = await flood(gateway, framing, piece);
    expect(exchange.answers[0]?.status).toBe(413);
    expect(exchange.answers[0]?.headers["connection"]).toBe("close");
    expect(exchange.answers).toHaveLength(1);
    expect(exchange.closed).toBe(true);
    // What kernel buffers hold is sent without anybody reading it.
    expect(sent).toBeLessThan(32 * 1024 * 1024);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024);
  });

  test("does not read an upload after refusing its credential", async () => {
    await using gateway = await small();
    const connection = await openRaw(gateway.url);
    await connection.write(
      head("POST /v1/chat/completions HTTP/1.1", ["Host: 127.0.0.1", "Content-Length: 10000000000"]) + "x".repeat(1000),
    );
    const exchange = await connection.ended(3_000);
    connection.socket.destroy();
    expect(exchange.answers[0]?.status).toBe(401);
    expect(exchange.closed).toBe(true);
  });

  test("accepts 2,048 messages and refuses 2,049 with the range", async () => {
    const messages = (count: number) =>
      JSON.stringify({ ...good, messages: Array.from({ length: count }, () => ({ role: "user", content: "x" })) });
    expect((await post(messages(2048))).status).toBe(200);
    upstream.requests.length = 0;
    const { status, error } = await post(messages(2049));
    expect(status).toBe(400);
    expect(error?.["message"]).toBe("messages: must be an array of 1 to 2048 items (got an array of 2049 items).");
  });
});
