// Tags over HTTP: from the key, the header and the body, in all formats of conversations; in reports, lists and quotas.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
const model = "upstream-model";
const wanted = "tags: { metadata: [team], user: true }\n";

beforeAll(async () => {
  upstream = await startUpstream(chatScript());
  server = await startHeadrace({ yaml: upstreamYaml(upstream, wanted) });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const bodies = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "Hi" }] },
  "/v1/responses": { input: "Hi", store: false },
  "/v1/messages": { max_tokens: 10, messages: [{ role: "user", content: "Hi" }] },
} as const;
type Path = keyof typeof bodies;
const paths = Object.keys(bodies) as Path[];

interface Asked {
  key?: string;
  tags?: string;
  more?: object;
}

async function ask(path: Path, { key = server.key, tags, more = {} }: Asked = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, ...(tags === undefined ? {} : { "x-headrace-tags": tags }) };
  const response = await server.request(path, { headers, body: { model, ...bodies[path], ...more } });
  await response.clone().text();
  return response;
}

async function json(path: string, key = server.key) {
  const response = await server.request(path, { headers: { authorization: `Bearer ${key}` } });
  return (await response.json()) as { data: Record<string, unknown>[] } & Record<string, unknown>;
}

async function tagsOf(response: Response): Promise<unknown> {
  expect([response.status, response.status === 200 ? "" : await response.text()]).toEqual([200, ""]);
  return (await json(`/v1/requests/${response.headers.get("x-request-id")}`))["tags"];
}

async function makeKey(body: object): Promise<{ id: string; key: string }> {
  const response = await server.request("/v1/keys", { body: { name: "k", ...body } });
  expect(response.status).toBe(200);
  return (await response.json()) as { id: string; key: string };
}

test("refuses the gateway's own tags on requests, keys and metadata", async () => {
  for (const tag of ["gateway:shadow", "asked:old"]) {
    const asked = await ask("/v1/chat/completions", { tags: `ok,${tag}` });
    expect([asked.status, (await asked.json()).error.param]).toEqual([400, "x-headrace-tags"]);
    const made = await server.request("/v1/keys", { body: { name: "k", tags: [tag] } });
    expect([made.status, (await made.json()).error.param]).toEqual([400, "tags[0]"]);
    const name = tag.split(":")[0];
    await expect(server.reconfigure(upstreamYaml(upstream, `tags: { metadata: [${name}] }\n`))).rejects.toThrow(
      "neither asked nor gateway",
    );
  }
});

test.each(paths)("counts a request to %s under tags of key, header and body, whole and streamed", async (path) => {
  const { id, key } = await makeKey({ tags: ["own"], scopes: ["chat:write", "usage:read"] });
  const said =
    path === "/v1/messages" ? { metadata: { user_id: "u-1", team: "a" } } : { user: "u-1", metadata: { team: "a" } };
  expect(await tagsOf(await ask(path, { key, tags: "x, y", more: said }))).toEqual([
    "own",
    "x",
    "y",
    "team:a",
    "user:u-1",
  ]);
  expect(await tagsOf(await ask(path, { key, more: { ...said, stream: true } }))).toEqual([
    "own",
    "team:a",
    "user:u-1",
  ]);
  expect(await tagsOf(await ask(path, { key, more: path === "/v1/messages" ? {} : { metadata: null } }))).toEqual([
    "own",
  ]);
  expect(await tagsOf(await ask(path))).toEqual([]);
  const refused = await ask(path, { key, tags: "no tag" });
  expect([refused.status, await refused.text()]).toEqual([
    400,
    expect.stringContaining("x-headrace-tags: must be tags"),
  ]);
  const { data } = await json(`/v1/usage?group_by=tag&key=${id}`);
  const rows = data.map(({ tag, requests, total_tokens }) => [tag, requests, total_tokens]);
  const each = Number(rows[0]?.[2]) / 3;
  expect(each).toBeGreaterThan(0);
  expect(rows).toEqual([
    ...[
      ["own", 3, 3 * each],
      ["team:a", 2, 2 * each],
      ["user:u-1", 2, 2 * each],
      ["x", 1, each],
      ["y", 1, each],
    ],
  ]);
  expect((await json(`/v1/usage?key=${id}`)).data).toMatchObject([{ requests: 3, total_tokens: 3 * each }]);
  expect((await json(`/v1/keys/${id}/usage?tag=x`)).data).toMatchObject([{ requests: 1 }]);
});

test("lists requests by tag, and includes untagged ones in a CSV report by tag", async () => {
  await ask("/v1/chat/completions");
  await ask("/v1/chat/completions", { tags: "csv-1" });
  const last = await ask("/v1/chat/completions", { tags: "csv-1,csv-2" });
  const { data } = await json("/v1/requests?tag=csv-1");
  expect(data.map(({ tags }) => tags)).toEqual([["csv-1", "csv-2"], ["csv-1"]]);
  expect((await json("/v1/requests?tag=csv-2")).data).toMatchObject([{ id: last.headers.get("x-request-id") }]);
  expect((await json("/v1/requests?tag=csv")).data).toEqual([]);
  expect((await json("/v1/requests?tag=csv-1&outcome=refused")).data).toEqual([]);
  const response = await server.request("/v1/usage?group_by=tag&bucket=month", { headers: { accept: "text/csv" } });
  const lines = (await response.text())
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(",").slice(2, 4).join(" "));
  expect(lines).toContain("csv-1 2");
  expect(lines).toContain("csv-2 1");
  expect(lines[0]).toBe("tag requests");
  expect(lines[1]).toMatch(/^ \d+$/);
});

test("counts a compacted conversation under its body's tag", async () => {
  const more = { metadata: { team: "c" }, safety_identifier: "anna" };
  const body = { model, input: "Hi", ...more };
  const response = await server.request("/v1/responses/compact", { body });
  await response.clone().text();
  expect(await tagsOf(response)).toEqual(["team:c", "user:anna"]);
});

test("enforces a key's tag quota despite any header, and names the tag and reset time in the refusal", async () => {
  const quota = { unit: "requests", amount: 2, per: "day", tag: "held" };
  const { key } = await makeKey({ tags: ["held"], quotas: [quota], scopes: ["chat:write", "usage:read"] });
  expect((await ask("/v1/chat/completions", { key, tags: "other-one" })).status).toBe(200);
  expect((await ask("/v1/messages", { key, tags: "" })).status).toBe(200);
  const refused = await ask("/v1/responses", { key, tags: "free" });
  const { error, quota: spent } = (await refused.json()) as { error: { message: string }; quota: object };
  expect(error.message).toContain(
    "the quota of the key with the tag held per day has left: 2 requests of 2 requests are used",
  );
  expect(spent).toMatchObject({ owner: "key", tag: "held", used: 2, resets_at: expect.any(Number) });
  const account = (await json("/v1/account", key)) as unknown as { quotas: object[] };
  expect(account.quotas).toMatchObject([{ owner: "key", tag: "held", amount: 2, used: 2 }]);
});

test("counts a tag quota by the client's tags alone, with tag fields set by a changed headrace.yaml", async () => {
  const quota = { unit: "requests", amount: 1, per: "day", tag: "team:b" };
  const { key } = await makeKey({ quotas: [quota], scopes: ["chat:write"] });
  const more = { metadata: { team: "b" } };
  expect((await ask("/v1/chat/completions", { key })).status).toBe(200);
  expect((await ask("/v1/chat/completions", { key, more })).status).toBe(200);
  expect((await ask("/v1/responses", { key, tags: "team:b" })).status).toBe(403);
  expect((await ask("/v1/chat/completions", { key, more })).status).toBe(403);
  expect((await ask("/v1/chat/completions", { key })).status).toBe(200);
  await server.reconfigure(upstreamYaml(upstream));
  expect(await tagsOf(await ask("/v1/chat/completions", { key, more: { user: "u", ...more } }))).toEqual([]);
  await server.reconfigure(upstreamYaml(upstream, "tags: { most_a_day: 1 }\n"));
  expect(await tagsOf(await ask("/v1/chat/completions", { tags: "brand-new,team:b" }))).toEqual(["other"]);
  await server.reconfigure(upstreamYaml(upstream, wanted));
});
