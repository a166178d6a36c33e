// Tests the content coding that a client gets, and which answers are compressed.
import { expect, test } from "bun:test";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { codingFor, codings, inCoding, isWorthCoding } from "./content-coding.ts";

test.each([
  ["gzip, deflate, br, zstd", "zstd"],
  ["GZIP", "gzip"],
  ["x-gzip", "gzip"],
  ["br;q=0, gzip;q=0.5", "gzip"],
  ["br;q=0.0", undefined],
  ["gzip;q=1.0, br;q=0.9, zstd;q=0.1", "gzip"],
  ["gzip ; q=0.3 , br;q=0.301", "br"],
  ["*", "zstd"],
  ["*;q=0.5, zstd;q=0", "br"],
  ["*;q=0", undefined],
  ["identity", undefined],
  ["identity, gzip;q=0.5", undefined],
  ["identity;q=0.5, gzip", "gzip"],
  ["gzip;q=nonsense", undefined],
  ["deflate, compress", undefined],
  ["", undefined],
  [null, undefined],
])("answers accept-encoding %p with %p", (accepted, coding) => {
  expect(codingFor(accepted, codings)).toBe(coding as never);
});

const json = { "content-type": "application/json" };
const body = JSON.stringify({ text: "water ".repeat(2_000) });

test.each([
  ["zstd", zstdDecompressSync],
  ["br", brotliDecompressSync],
  ["gzip", gunzipSync],
] as const)("compresses an answer in %s without loss, and sets vary for caches", async (coding, decode) => {
  const answer = await inCoding({ status: 200, headers: { ...json, etag: '"a"', vary: "Accept" }, body }, coding);
  expect(answer.headers).toMatchObject({ "content-encoding": coding, etag: 'W/"a"', vary: "Accept, Accept-Encoding" });
  expect(answer.body.length).toBeLessThan(body.length / 4);
  expect(decode(answer.body as Uint8Array).toString()).toBe(body);
});

test("does not compress small answers, errors, pictures and compressed files", () => {
  const worth = (status: number, headers: Record<string, string>, text = body) =>
    isWorthCoding({ status, headers, body: text });
  expect(worth(200, json)).toBe(true);
  expect(worth(200, { "content-type": "text/csv; charset=utf-8" })).toBe(true);
  expect(worth(200, json, body.slice(0, 1_000))).toBe(false);
  expect(worth(404, json)).toBe(false);
  expect(worth(200, { "content-type": "image/svg+xml" })).toBe(false);
  expect(worth(200, { ...json, "content-encoding": "br" })).toBe(false);
  expect(worth(200, {})).toBe(false);
});
