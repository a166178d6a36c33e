// Ids and query parameters of management endpoints that name nothing, or something that every object has.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { refusal, stateOf } from "./management-state.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let chatId = "";

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const body = { model: "upstream-model", messages: [{ role: "user", content: "x" }], store: true };
  chatId = String((await (await server.request("/v1/chat/completions", { body })).json()).id);
  expect((await server.request(`/v1/chat/completions/${chatId}`)).status).toBe(200);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

test("accepts names of JavaScript object members as ordinary metadata keys", async () => {
  const path = `/v1/chat/completions/${chatId}`;
  const metadata = JSON.parse('{"__proto__":"a","constructor":"b","toString":"c","hasOwnProperty":"d"}') as Record<
    string,
    string
  >;
  const labelled = await server.request(path, { body: JSON.stringify({ metadata }) });
  expect(await labelled.text()).toContain('"__proto__":"a"');
  for (const [name, value] of Object.entries(metadata)) {
    const found = await server.request(`/v1/chat/completions?metadata[${name}]=${value}`);
    expect(((await found.json()) as { data: unknown[] }).data).toHaveLength(1);
    const none = await server.request(`/v1/chat/completions?metadata[${name}]=x`);
    expect(((await none.json()) as { data: unknown[] }).data).toHaveLength(0);
  }
});

const hostileIds = [
  "%00",
  `${"%00".repeat(50)}`,
  "a%2Fb",
  "..%2F..%2Fheadrace.db",
  "%27",
  "%27%20OR%20%271%27%3D%271",
  "%22%3B%20DROP%20TABLE%20api_keys%3B--",
  "%25",
  "%",
  "%zz",
  "%ff",
  "%c0%ae",
  "%F0%9F%98%80",
  "__proto__",
  "constructor",
  "toString",
  "*",
  "key_",
  "undefined",
  "null",
  "-1",
  "%0d%0aX-Evil:1",
  "a".repeat(10_000),
  "%41".repeat(3_000),
  "%E2%80%AE",
  "%F4%8F%BF%BF",
];
const idPaths: readonly [method: string, path: (id: string) => string, body?: string][] = [
  ["GET", (id) => `/v1/keys/${id}`],
  ["PATCH", (id) => `/v1/keys/${id}`, '{"name":"x"}'],
  ["DELETE", (id) => `/v1/keys/${id}`],
  ["POST", (id) => `/v1/keys/${id}/rotate`, "{}"],
  ["GET", (id) => `/v1/keys/${id}/usage`],
  ["GET", (id) => `/v1/keys/${id}/rotation`],
  ["PUT", (id) => `/v1/keys/${id}/rotation`, '{"every_days":90}'],
  ["DELETE", (id) => `/v1/keys/${id}/rotation`],
  ["GET", (id) => `/v1/chat/completions/${id}`],
  ["POST", (id) => `/v1/chat/completions/${id}`, '{"metadata":{"a":"b"}}'],
  ["DELETE", (id) => `/v1/chat/completions/${id}`],
  ["GET", (id) => `/v1/chat/completions/${id}/messages`],
];

test.each(idPaths.map((entry) => [`${entry[0]} ${entry[1]("{id}")}`, entry] as const))(
  "answers %s with invalid ids by 404 in the usual format, and changes nothing",
  async (_, [method, path, body]) => {
    const before = stateOf(server);
    for (const id of hostileIds) {
      const response = await server.request(path(id), { method, ...(body === undefined ? {} : { body }) });
      const { status } = await refusal(response);
      expect([id.slice(0, 40), [400, 404, 405].includes(status)]).toEqual([id.slice(0, 40), true]);
      expect(response.headers.get("x-evil")).toBeNull();
    }
    expect(stateOf(server)).toBe(before);
  },
);

const badLimits = [
  "0",
  "-1",
  "1.5",
  "NaN",
  "Infinity",
  "x",
  "1e9",
  "%00",
  "",
  "99999999999999999999",
  "true",
  "null",
  "1001",
];
const badTimes = [
  "x",
  "-1",
  "NaN",
  "1e9",
  "1795205000000",
  "2026-13-01",
  "2026-02-30",
  "2026-01-01T25:00:00Z",
  "0x10",
  "",
  "%00",
  "99999999999999",
  "1.5",
  "now",
];
const badQueries: readonly [path: string, names: Readonly<Record<string, readonly string[]>>][] = [
  ["/v1/keys", { limit: [...badLimits, "101"], after: ["", "x".repeat(201)] }],
  [
    "/v1/chat/completions",
    {
      limit: [...badLimits, "101"],
      after: ["", "x".repeat(201), "chatcmpl-none", "%00"],
      order: ["x", "", "ASC", "__proto__"],
      model: ["", "x".repeat(257)],
      "metadata[a]": ["x".repeat(513)],
      [`metadata[${"x".repeat(65)}]`]: ["x"],
    },
  ],
  [
    "/v1/usage",
    {
      limit: badLimits,
      start: badTimes,
      end: badTimes,
      bucket: ["x", "", "minute", "__proto__", "HOUR"],
      group_by: ["x", "", "model,model", "model,,key", "__proto__", "constructor", ",", "model;key"],
      cursor: [
        "x",
        "",
        "%00",
        "W10",
        "e30",
        "bnVsbA",
        "WyJkYXkiLC0xXQ",
        "WyJkYXkiLDFlMzA4XQ",
        "x".repeat(9_000),
        btoa('["day",0,{}]'),
        btoa('["day",86400,"a"]'),
        btoa('["day",null]'),
      ],
    },
  ],
];

test.each(badQueries)("refuses invalid query values of GET %s by the parameter's name", async (path, names) => {
  for (const [name, values] of Object.entries(names)) {
    for (const value of values) {
      const response = await server.request(`${path}?${name}=${value}`);
      expect([name, value.slice(0, 40), response.status]).toEqual([name, value.slice(0, 40), 400]);
      const { message } = await refusal(response);
      expect([value.slice(0, 40), message.startsWith(name.slice(0, 8))]).toEqual([value.slice(0, 40), true]);
    }
    expect((await refusal(await server.request(`${path}?${name}=1&${name}=1`))).status).toBe(400);
  }
  for (const name of [
    "__proto__",
    "constructor",
    "toString",
    "Limit",
    "limit[]",
    "%00",
    "",
    "x".repeat(8_000),
    "metadata",
    "account",
    "environment",
    "account_id",
  ]) {
    const response = await server.request(`${path}?${name}=1`);
    expect([name.slice(0, 40), response.status]).toEqual([name.slice(0, 40), 400]);
    await refusal(response);
  }
});
