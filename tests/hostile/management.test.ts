// Management endpoints fed with everything that they are not made for: a clear refusal, nothing changed, never a 500.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { refusal, stateOf } from "./management-state.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
/** What the requests below are about. */
let keyId = "";
let chatId = "";

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  keyId = String((await (await server.request("/v1/keys", { body: { name: "Target" } })).json()).id);
  const body = { model: "upstream-model", messages: [{ role: "user", content: "x" }], store: true };
  chatId = String((await (await server.request("/v1/chat/completions", { body })).json()).id);
  expect((await server.request(`/v1/chat/completions/${chatId}`)).status).toBe(200);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const long = (length: number) => "x".repeat(length);
/** JSON texts, as not all of them can be made by `JSON.stringify`. */
const noInteger = [
  '"1"',
  '"NaN"',
  "true",
  "[]",
  "{}",
  "[1]",
  "-1",
  "0",
  "1.5",
  "1e308",
  "1e400",
  "9007199254740993",
  '""',
];
const noText = ["1", "true", "[]", "{}", '["x"]'];
const badNames = [
  ...noText,
  "null",
  '""',
  '"   "',
  `"${long(101)}"`,
  '"a\\u0000b"',
  '"a\\nb"',
  '"\\u202eb"',
  '"\\ud800"',
  '"\\u200b"',
  '"\\u2028"',
];
const badScopes = [
  "1",
  '"chat:write"',
  "{}",
  "[]",
  "[1]",
  "[null]",
  '["nope"]',
  '["__proto__"]',
  '["CHAT:WRITE"]',
  '["chat:write "]',
  '[["chat:write"]]',
  `[${Array(21).fill('"chat:write"').join(",")}]`,
];
const badAddresses = [
  "1",
  '"1.2.3.4"',
  "{}",
  "[1]",
  "[null]",
  '[""]',
  '["x"]',
  '["1.2.3.4/33"]',
  '["::/129"]',
  '["1.2.3.4/-1"]',
  '["999.1.1.1"]',
  '["01.2.3.4"]',
  '["127.1"]',
  '["0x7f.0.0.1"]',
  '["1.2.3.4\\u0000"]',
  '["fe80::1%eth0"]',
  `[${Array(101).fill('"1.2.3.4"').join(",")}]`,
  `["${long(65)}"]`,
];
const badSpend = noInteger.filter((text) => text !== "0" && text !== "1.5");
const badWhole = noInteger.filter((text) => text !== "0");

type Fields = Readonly<Record<string, readonly string[]>>;
const settings: Fields = {
  expires_at: [...noInteger, "1", "1795205000000", "253402300800"],
  allowed_ips: badAddresses,
  rate_limit: [...noInteger, "1000001"],
  monthly_tokens: [...badWhole, "1000000000000001"],
  monthly_spend: [...badSpend, "9000001", "-0.01"],
};

const endpoints: readonly { what: string; method: string; path: () => string; good: string; fields: Fields }[] = [
  {
    what: "POST /v1/keys",
    method: "POST",
    path: () => "/v1/keys",
    good: '"name":"x"',
    fields: {
      ...settings,
      name: badNames,
      scopes: badScopes,
      rate_limit_window: [...noInteger, "86401", "60"],
      expires_in: [...noInteger, "3153600001"],
    },
  },
  {
    what: "PATCH /v1/keys/{id}",
    method: "PATCH",
    path: () => `/v1/keys/${keyId}`,
    good: "",
    fields: {
      ...settings,
      name: badNames,
      scopes: [...badScopes, "null"],
      rate_limit_window: [...noInteger, "86401", "60"],
    },
  },
  {
    what: "POST /v1/keys/{id}/rotate",
    method: "POST",
    path: () => `/v1/keys/${keyId}/rotate`,
    good: "",
    fields: { overlap_seconds: [...badWhole, "2592001"] },
  },
  {
    what: "POST /v1/auth/token",
    method: "POST",
    path: () => "/v1/auth/token",
    good: `"api_key":"KEY"`,
    fields: {
      api_key: [...noText, "null"],
      expires_in: [...noInteger, "59", "86401"],
      scope: [
        ...noText,
        '""',
        '" "',
        '"nope"',
        '"chat:write,chat:read"',
        '"chat:write\\tchat:read"',
        '"__proto__"',
        `"${long(5_000)}"`,
      ],
    },
  },
  {
    what: "POST /v1/chat/completions/{id}",
    method: "POST",
    path: () => `/v1/chat/completions/${chatId}`,
    good: "",
    fields: {
      metadata: [
        "1",
        "true",
        '"x"',
        "[]",
        '["x"]',
        '{"a":1}',
        '{"a":null}',
        '{"a":{}}',
        '{"a":["x"]}',
        '{"__proto__":7}',
        '{"constructor":{}}',
        `{"${long(65)}":"x"}`,
        `{"a":"${long(513)}"}`,
        `{${Array.from({ length: 17 }, (_, i) => `"k${i}":"x"`).join(",")}}`,
      ],
    },
  },
];

function send(
  endpoint: (typeof endpoints)[number],
  body: string | Uint8Array<ArrayBuffer>,
  type = "application/json",
): Promise<Response> {
  return fetch(server.url + endpoint.path(), {
    method: endpoint.method,
    headers: { authorization: `Bearer ${server.key}`, "content-type": type },
    body: typeof body === "string" ? body.replace('"KEY"', JSON.stringify(server.key)) : body,
  });
}

describe.each(endpoints)("$what", (endpoint) => {
  const { good, fields } = endpoint;

  test.each(Object.keys(fields))(
    "refuses an invalid value by the field's name, and changes nothing: %s",
    async (field) => {
      const before = stateOf(server);
      for (const value of fields[field] ?? []) {
        const others = good.startsWith(`"${field}"`) ? "" : good;
        const body = `{${others}${others ? "," : ""}"${field}":${value}}`;
        const { status, message, code } = await refusal(await send(endpoint, body));
        expect([value, status, code]).toEqual([value, 400, "invalid_request"]);
        expect([value, message]).toEqual([
          value,
          expect.stringMatching(new RegExp(`^${field}\\b`)) as unknown as string,
        ]);
      }
      expect(stateOf(server)).toBe(before);
    },
  );

  test("refuses unknown and duplicate fields by name", async () => {
    const before = stateOf(server);
    const [known = ""] = Object.keys(fields);
    const strangers = [
      "admin",
      "id",
      "digest",
      "key",
      "account_id",
      "parent_id",
      "limit_id",
      "created_by",
      "revoked_at",
      "__proto__",
      "constructor",
      "toString",
      "hasOwnProperty",
      "Name",
      "name ",
      "",
    ];
    // OpenAI's own endpoint takes others, and so does ours.
    for (const name of endpoint.what.includes("chat") ? [] : strangers) {
      const answer = await refusal(
        await send(endpoint, `{${good}${good ? "," : ""}${JSON.stringify(name)}:{"isAdmin":true}}`),
      );
      expect([name, answer.status]).toEqual([name, 400]);
      expect(answer.message).toStartWith(`${name === "" ? "" : name}`);
    }
    const escaped = `\\u00${known.charCodeAt(0).toString(16)}${known.slice(1)}`;
    for (const name of [known, escaped]) {
      const answer = await refusal(await send(endpoint, `{"${known}":null,"${name}":null}`));
      expect([name, answer.status]).toEqual([name, 400]);
      expect(answer.message).toContain(known);
    }
    expect(stateOf(server)).toBe(before);
  });

  const bodies: readonly [name: string, body: () => string | Uint8Array<ArrayBuffer>, statuses: readonly number[]][] = [
    ["nothing", () => "", [400, 415, 200]],
    ["an array", () => "[]", [400]],
    ["null", () => "null", [400]],
    ["a text", () => '"x"', [400]],
    ["half an object", () => '{"name":', [400]],
    ["bytes that are no UTF-8", () => new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), [400]],
    ["100,000 levels", () => `{"name":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, [400, 413]],
    ["65 levels", () => `{"metadata":${'{"a":'.repeat(65)}1${"}".repeat(65)}}`, [400, 413]],
    ["32 MiB and one byte", () => `{"name":"${long(33_554_432)}"}`, [413]],
    ["a text of 9 MB", () => `{"name":"${long(9_000_000)}","metadata":"${long(900_000)}"}`, [400, 413]],
    ["a name of 9 MB", () => `{"${long(9_000_000)}":1}`, [400, 413]],
    ["700,000 members", () => `{${Array.from({ length: 700_000 }, (_, i) => `"k${i}":1`).join(",")}}`, [400, 413]],
    [
      "700,000 members of a member",
      () => `{"metadata":{${Array.from({ length: 700_000 }, (_, i) => `"k${i}":1`).join(",")}}}`,
      [400, 413],
    ],
    ["4 million items", () => `{"scopes":[${Array(4_000_000).fill(1).join(",")}]}`, [400, 413]],
  ];
  test("refuses malformed bodies quickly without changes", async () => {
    const before = stateOf(server);
    for (const [name, body, statuses] of bodies) {
      const bytes = body();
      if (bytes === "" && endpoint.what.includes("rotate")) continue;
      const started = performance.now();
      const { status } = await refusal(await send(endpoint, bytes));
      expect([name, statuses.includes(status)]).toEqual([name, true]);
      expect([name, performance.now() - started < 1_500]).toEqual([name, true]);
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]) {
      expect((await refusal(await send(endpoint, "{}", type))).status).toBe(415);
    }
    expect(stateOf(server)).toBe(before);
  });
});
