// Tests whether a request may get a cached answer, by model, key and client header, and which requests never do.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import type { Model } from "../../domain/models/model.ts";
import { type CachePolicy, defaultCachePolicy, type ResponseCache } from "../../domain/models/policies/cache.ts";
import { AnswerCache } from "./answer-cache.ts";
import type { AnswerCacheParts } from "./cached-request.ts";

const untouched: AnswerCacheParts = {
  store: {
    read: () => ({ answer: undefined, mark: 0 }),
    write() {},
    forget: async () => {},
  },
  similar: { vectorOf: async () => undefined, nearest: () => undefined, add() {}, remove() {}, mark: 0 },
  clock: { nowSeconds: () => 0 },
  key: new Uint8Array(32),
  maxAnswerBytes: 1_000,
};
const cache = new AnswerCache(untouched);

function modelWith(policy?: CachePolicy): Model {
  return {
    ...{ id: "m", created: 0, ownedBy: "", capabilities: undefined, context: undefined, price: undefined },
    ...{ environments: ["live"], deployments: [] },
    ...(policy ? { policies: { cache: policy } } : {}),
  };
}

interface Said {
  key?: ResponseCache;
  model?: CachePolicy;
  header?: string;
  body?: Record<string, unknown>;
  recording?: boolean;
}

function opened({ key, model, header, body = { temperature: 0 }, recording = false }: Said) {
  const principal = principalFor({ responseCache: key });
  const request = decodedRequest({ messages: [], ...body });
  return cache.open({ request, principal, cacheHeader: header ?? null }, modelWith(model), recording);
}

test("reads nothing more of a request if neither the model nor the key has a cache", () => {
  const call = {
    principal: principalFor(),
    get request(): never {
      throw new Error("The request was looked at.");
    },
    get cacheHeader(): never {
      throw new Error("The header was looked at.");
    },
  };
  expect(cache.open(call, modelWith(), false)).toBeUndefined();
});

test("caches by the key's setting: on with a default policy, off whatever the model says", () => {
  expect(opened({ key: "on" })?.policy).toEqual(defaultCachePolicy);
  const half = { ...defaultCachePolicy, priceFactor: 0.5 };
  expect(opened({ key: "on", model: half })?.policy).toEqual(half);
  expect(opened({ model: half })?.policy).toEqual(half);
  expect(opened({ key: "off", model: half, header: "use" })).toBeUndefined();
});

test("does not cache stored requests or requests that are not repeatable", () => {
  expect(opened({ key: "on", recording: true })).toBeUndefined();
  const request = decodedRequest({ input: "x", background: true }, "response");
  const call = { request, principal: principalFor({ responseCache: "on" }), cacheHeader: "use" };
  expect(cache.open(call, modelWith(), false)).toBeUndefined();
  const ranks = decodedRequest({ query: "x", documents: ["y"] }, "rerank");
  expect(cache.open({ ...call, request: ranks }, modelWith(), false)).toBeUndefined();
});

test.each([
  ["deterministic", 0, undefined, true],
  ["deterministic", 1, undefined, false],
  ["deterministic", 1, "use", true],
  ["deterministic", 0, "off", false],
  ["asked", 0, undefined, false],
  ["asked", 1, "Refresh ", true],
  ["all", 1, undefined, true],
] as const)(
  "with cached requests %p, looks up temperature %p with header %p: %p",
  (requests, temperature, header, expected) => {
    const model = { ...defaultCachePolicy, requests };
    expect(opened({ model, body: { temperature }, ...(header ? { header } : {}) }) !== undefined).toBe(expected);
  },
);

test("refuses an unknown cache header and names the valid ones", () => {
  expect(() => opened({ key: "on", header: "maybe" })).toThrow("must be `use`");
});

test.each([
  ["an image by URL", [{ type: "image_url", image_url: { url: "HTTPS://example.com/a.png" } }]],
  ["an image whose URL is the member itself", [{ type: "image_url", image_url: "http://example.com/a.png" }]],
  ["a video by URL", [{ type: "video_url", video_url: { url: "https://example.com/a.mp4" } }]],
  ["a file by its id", [{ type: "file", file: { file_id: "file-1" } }]],
  ["a document by URL", [{ type: "document", source: { type: "url", url: "https://example.com/a.pdf" } }]],
])("caches an answer about %s only if the client asks for it", (_what, content) => {
  const body = { temperature: 0, messages: [{ role: "user", content }] };
  expect(opened({ key: "on", body })).toBeUndefined();
  expect(opened({ model: { ...defaultCachePolicy, requests: "all" }, body })).toBeUndefined();
  expect(opened({ key: "on", body, header: "use" })).toBeDefined();
});

test("caches an answer about an inline image, and about a text that contains an address", () => {
  const image = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }];
  const text = [{ type: "text", text: "https://example.com" }, ...image];
  for (const content of [image, text]) {
    expect(opened({ key: "on", body: { temperature: 0, messages: [{ role: "user", content }] } })).toBeDefined();
  }
});
