// Tests the body of a request: read once, synchronously if it has arrived, and refused with a helpful reason.

import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { incoming } from "../../../tests/support/exchange.ts";
import type { BodySource } from "../../base/bytes/body-source.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { GatewayError } from "../../base/errors.ts";
import { type BodyFault, type IncomingRequest, RequestBodyError } from "../../http1/message.ts";
import { readJsonBody, readJsonBytes } from "./body.ts";

const limits = { bodyBytes: 1_000, depth: 8 };
const headers = { "content-type": "application/json" };

function request(bytes: Uint8Array | string, more: Partial<IncomingRequest> = {}): IncomingRequest {
  const flowBody = () => piecesOf(ByteSpan.of(bytes).view, bytes.length);
  return { ...incoming({ target: "/", headers, body: "" }), readBody: () => ByteSpan.of(bytes), flowBody, ...more };
}

/** Returns a source that lends its pieces: each is overwritten after the sink has received it. */
function piecesOf(bytes: Uint8Array, pieceBytes: number): BodySource {
  let isPaused = false;
  let isCancelled = false;
  return {
    async flow(sink) {
      for (let at = 0; at < bytes.length && !isCancelled; at += pieceBytes) {
        while (isPaused) await Bun.sleep(1);
        const lent = Buffer.from(bytes.subarray(at, at + pieceBytes));
        sink.data(ByteSpan.of(lent));
        lent.fill(0xff);
      }
      if (!isCancelled) sink.end();
    },
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
    },
    cancel: () => {
      isCancelled = true;
    },
  };
}

async function refusal(
  req: IncomingRequest,
  within = limits,
): Promise<Pick<GatewayError, "code" | "message" | "detail">> {
  try {
    await readJsonBody(req, within);
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, message: error.message, detail: error.detail };
    throw error;
  }
  throw new Error("It was accepted.");
}

test("reads an arrived body synchronously, and a later one once it has arrived", async () => {
  const text = '{"model":"m","x":"é"}';
  const read = readJsonBody(request(text), limits);
  expect(read).toMatchObject({ text, body: { model: "m", x: "é" } });
  const later = readJsonBody(request("", { readBody: async () => ByteSpan.of(text) }), limits);
  expect(later).toBeInstanceOf(Promise);
  expect(await later).toMatchObject({ text, bytes: ByteSpan.of(text) });
});

test("passes the size limit to the reader of the body", () => {
  let most = 0;
  const readBody = (maxBytes: number) => {
    most = maxBytes;
    return ByteSpan.of("{}");
  };
  readJsonBody(request("", { readBody }), limits);
  expect(most).toBe(limits.bodyBytes);
});

test("removes a byte-order mark before parsing and forwarding", async () => {
  const { text, bytes } = await readJsonBody(request('\ufeff{"a":1}'), limits);
  expect([text, bytes.text]).toEqual(['{"a":1}', '{"a":1}']);
});

describe("refused bodies", () => {
  test.each<[BodyFault, GatewayError["code"], RegExp]>([
    ["too_large", "request_too_large", /^The body is larger than the limit of 1000 bytes\.$/],
    ["incomplete", "invalid_request", /^The body ended early\.$/],
    ["malformed", "invalid_request", /framing is wrong: Because\.$/],
  ])("refuses a body that is %s, whether the reader throws or rejects", async (fault, code, message) => {
    const error = new RequestBodyError(fault, "Because.");
    const thrown = await refusal(
      request("", {
        readBody: () => {
          throw error;
        },
      }),
    );
    const rejected = await refusal(request("", { readBody: () => Promise.reject(error) }));
    expect(thrown).toEqual(rejected);
    expect(thrown.code).toBe(code);
    expect(thrown.message).toMatch(message);
  });

  test.each<[string, Uint8Array | string]>([
    ["The body is not valid UTF-8.", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
    ["The body is not valid UTF-8.", Buffer.from('{"a":"\ud800"}').subarray(0, 7)],
    ["The body is empty; send a JSON object.", ""],
    ["The body is empty; send a JSON object.", "\ufeff"],
    ["The body cannot be used: it is not valid JSON.", "{"],
    ["The body must be a JSON object.", "[]"],
    ["The body must be a JSON object.", "null"],
    ["The body cannot be used: the JSON is nested more than 8 levels deep.", "[".repeat(9)],
    ["The body cannot be used: it holds more than 200000 objects and arrays.", `{"z":[${"[[]],".repeat(100_000)}0]}`],
  ])("refuses an unusable body with %p", async (message, bytes) => {
    expect(await refusal(request(bytes))).toEqual({ code: "invalid_request", message, detail: undefined });
  });

  test.each([
    [{}, /Content-Type: application\/json/],
    [{ "content-type": "text/json" }, /Content-Type/],
    [{ "content-type": "application/jsonx" }, /Content-Type/],
    [{ ...headers, "content-encoding": "compress" }, /gzip, deflate, br or zstd/],
    [{ ...headers, "content-encoding": "gzip, br" }, /compressed once/],
  ])("refuses a body sent with %p", async (fields, message) => {
    const refused = await refusal(request("{}", { headers: new Headers(fields) }));
    expect(refused.code).toBe("unsupported_media_type");
    expect(refused.message).toMatch(message);
  });
});

describe("a compressed body", () => {
  const text = JSON.stringify({ model: "m", x: "é".repeat(200) });
  const packed = (encoding: string, bytes: Uint8Array | string, more: Partial<IncomingRequest> = {}) =>
    request(bytes, { headers: new Headers({ ...headers, "content-encoding": encoding }), ...more });

  test.each([
    ["gzip", gzipSync(text)],
    ["X-GZIP", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["br", brotliCompressSync(text)],
    ["zstd", zstdCompressSync(text)],
  ])("decompresses a body in %s and counts its bytes against the key", async (encoding, bytes) => {
    let held = 0;
    const hold = (more: number) => {
      held += more;
      return undefined;
    };
    expect(await readJsonBody(packed(encoding, bytes, { hold }), limits)).toMatchObject({ text });
    expect(held).toBe(Buffer.byteLength(text));
  });

  test("refuses a body that exceeds the limit when decompressed, and decompresses no more of it", async () => {
    let held = 0;
    const hold = (more: number) => {
      held += more;
      return undefined;
    };
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const { code, message } = await refusal(packed("gzip", bomb, { hold }));
    expect([code, message]).toEqual([
      "request_too_large",
      "The body is larger than the limit of 1000 bytes once it is unpacked.",
    ]);
    expect(held).toBeLessThanOrEqual(limits.bodyBytes);
  });

  /** A text of more than one block, so that a decoder outputs much of it before it finds that the end is missing. */
  const long = JSON.stringify({ model: "m", x: Array.from({ length: 60_000 }, (_, n) => (n * n) % 977) });
  const codings = [
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ] as const;

  test.each(codings)("refuses a truncated body in %s, wherever it ends", async (encoding, pack) => {
    for (const content of [text, long]) {
      const whole = pack(content);
      for (const part of [0, 0.01, 0.1, 0.5, 0.9, 0.99, 1]) {
        const end = Math.min(whole.length - 1, Math.floor(part * whole.length));
        for (const length of [end, end - 1, end - 3]) {
          if (length < 0) continue;
          const cut = packed(encoding, whole.subarray(0, length));
          const { code, message } = await refusal(cut, { ...limits, bodyBytes: 1_000_000 });
          expect([code, message]).toEqual(["invalid_request", expect.stringContaining("cannot be unpacked")]);
        }
      }
    }
  });

  test.each(codings)("refuses a body in %s with any bytes after its end", async (encoding, pack) => {
    const whole = pack(text);
    for (const more of ["x", "\0", "\0\0\0\0\0\0\0\0", text, whole.subarray(0, -1)]) {
      const { code, message } = await refusal(packed(encoding, Buffer.concat([whole, Buffer.from(more)])));
      expect([code, message]).toEqual(["invalid_request", expect.stringContaining("cannot be unpacked")]);
    }
  });

  test.each(codings)("decompresses a body in %s from pieces of any length", async (encoding, pack) => {
    const whole = pack(long);
    for (const pieceBytes of [1, 7, 1_000, 100_000]) {
      const inPieces = (bytes: Uint8Array) => packed(encoding, bytes, { flowBody: () => piecesOf(bytes, pieceBytes) });
      const within = { ...limits, bodyBytes: 1_000_000 };
      expect(await readJsonBody(inPieces(whole), within)).toMatchObject({ text: long });
      const longer = inPieces(Buffer.concat([whole, Buffer.from("x")]));
      expect(await refusal(longer, within)).toMatchObject({ code: "invalid_request" });
    }
  });

  test("pauses the source of a compressed body while the decoder is behind", async () => {
    const random = Buffer.from(crypto.getRandomValues(new Uint8Array(50_000))).toString("hex");
    const noise = JSON.stringify({ model: random.repeat(5) });
    const whole = gzipSync(noise, { level: 0 });
    const source = piecesOf(whole, 16_384);
    let taken = 0;
    let maxAtOnce = 0;
    const flowBody = (): BodySource => ({
      ...source,
      flow: (sink) =>
        source.flow({
          ...sink,
          data(bytes) {
            if (taken++ === 0) setImmediate(() => (maxAtOnce = taken));
            sink.data(bytes);
          },
          end: () => sink.end(),
          fail: (error) => sink.fail(error),
        }),
    });
    const within = { ...limits, bodyBytes: 1_000_000 };
    expect(await readJsonBody(packed("gzip", "", { flowBody }), within)).toMatchObject({ text: noise });
    expect(taken).toBeGreaterThan(25);
    expect(maxAtOnce).toBeLessThan(5);
  });

  test("reports a connection error in the middle of a compressed body as such", async () => {
    const flowBody = (): BodySource => ({
      flow(sink) {
        sink.data(ByteSpan.of(gzipSync(text).subarray(0, 20)));
        sink.fail(new RequestBodyError("incomplete", "Because"));
      },
      pause() {},
      resume() {},
      cancel() {},
    });
    expect(await refusal(packed("gzip", "", { flowBody }))).toMatchObject({ detail: "body_incomplete" });
  });

  test.each(codings)("refuses a body that is not really in %s", async (encoding) => {
    for (const bytes of [text, ""]) {
      const { code, message } = await refusal(packed(encoding, bytes));
      expect([code, message]).toEqual(["invalid_request", expect.stringContaining("cannot be unpacked")]);
    }
  });

  test("refuses a body that exceeds its memory account when decompressed", async () => {
    const full = new GatewayError("rate_limit_exceeded", "Full.");
    expect(await refusal(packed("gzip", gzipSync(text), { hold: () => full }))).toMatchObject({ message: "Full." });
  });
});

test.each(["application/json; charset=utf-8", "APPLICATION/JSON", "application/problem+json", "application/json ;x"])(
  "reads a body of the type %p as JSON",
  (type) => {
    const req = request("{}", { headers: new Headers({ "content-type": type, "content-encoding": "Identity" }) });
    expect(readJsonBody(req, limits)).toMatchObject({ body: {} });
  },
);

test("reads one long body of an account in each tick of the event loop", async () => {
  const ids = { key: "key_1", account: "acct_long_bodies" };
  const memoryAccount = { ids, take: () => undefined, release: () => {} };
  const body = JSON.stringify({ text: "x".repeat(64 * 1024) });
  const read = (of: string) => readJsonBytes(request(of, { memoryAccount }), { bodyBytes: 100_000, depth: 8 });
  expect(read(body)).toBeInstanceOf(ByteSpan);
  expect(read("{}")).toBeInstanceOf(ByteSpan);
  const second = read(body);
  expect(second).toBeInstanceOf(Promise);
  expect((await second).length).toBe(body.length);
});
