// Lists of tools on keys, apps, grants, accounts and memberships: each bounds what is listed and called, over /mcp and in responses.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { McpServer } from "@modelcontextprotocol/server";
import { type Browser, invite, type Person, setUp } from "../support/browser.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type McpFixture, startMcpServer } from "../support/mcp/mcp-server.ts";
import { toolsYaml } from "../support/mcp/tool-world.ts";
import { askAsApp, type RegisteredApp, refreshFields, registerApp, signInTo } from "../support/oauth-apps.ts";

const person: Person = { email: "mary@example.test", name: "Mary", password: "stone lantern nine birds" };
const all = ["crm_drop", "crm_note", "weather_forecast"];

let crm: McpFixture;
let weather: McpFixture;
let model: Bun.Server<undefined>;
let server: TestServer;
let olga: Browser;
let mary: Browser;
let app: RegisteredApp;
let accountId: string;
/** Mary's own key, and the token of the app that she allowed. */
let key: { id: string; key: string };
let tokens: { access_token: string; refresh_token: string };
/** Functions that the model was offered, turn by turn. */
let offered: string[][] = [];

beforeAll(async () => {
  crm = toolsOf("crm", "note", "drop");
  weather = toolsOf("weather", "forecast");
  model = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answerAsModel });
  const yaml = `upstreams: [{ name: m, url: "http://127.0.0.1:${model.port}/v1", apis: [chat] }]
models: [{ id: m, deployments: [{ upstream: m }] }]
${toolsYaml([
  { name: "crm", url: crm.url },
  { name: "weather", url: weather.url },
])}`;
  server = await startHeadrace({ yaml });
  olga = await setUp(server);
  mary = await invite(olga, { person });
  accountId = String((await mary.ask("/v1/account"))["id"]);
  app = await registerApp(server, { scopes: ["chat:write", "tools:use"] });
  tokens = await signInTo(app, server, mary);
  const body = { name: "Mary's", scopes: ["chat:write", "tools:use"] };
  key = (await mary.ask("/v1/keys", { method: "POST", body })) as typeof key;
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await Promise.all([crm[Symbol.asyncDispose](), weather[Symbol.asyncDispose](), model.stop(true)]);
});

function toolsOf(name: string, ...tools: string[]): McpFixture {
  return startMcpServer(() => {
    const mcp = new McpServer({ name, version: "1" });
    for (const tool of tools) mcp.registerTool(tool, {}, () => ({ content: [{ type: "text", text: `${tool} done` }] }));
    return mcp;
  });
}

/** A model that calls what it was not offered as well, once. */
async function answerAsModel(request: Request): Promise<Response> {
  if (request.method !== "POST") return new Response(null, { status: 404 });
  const { messages, tools = [] } = (await request.json()) as {
    messages: { role: string }[];
    tools?: { function: { name: string } }[];
  };
  offered.push(tools.map(({ function: { name } }) => name));
  const isNotified = messages.some(({ role }) => role === "tool");
  const call = { id: "call_1", type: "function", function: { name: "crm__drop", arguments: "{}" } };
  const said = isNotified ? { content: "Done." } : { content: null, tool_calls: [call] };
  const choices = [
    { index: 0, message: { role: "assistant", ...said }, finish_reason: isNotified ? "stop" : "tool_calls" },
  ];
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  return Response.json({ id: "c", object: "chat.completion", created: 1, model: "m", choices, usage });
}

const drops = () => crm.requests.filter(({ body }) => body.includes("tools/call") && body.includes('"drop"')).length;

/** What a credential gets: the list, what can be called of all that there is, and the same in a response of a model. */
async function gets(credential: string) {
  const authorization = `Bearer ${credential}`;
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const requestInit = { headers: { authorization } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }));
  const listed = (await client.listTools()).tools.map(({ name }) => name).sort();
  const called: string[] = [];
  for (const name of all) {
    const isCalled = await client.callTool({ name }).then(
      ({ isError }) => isError !== true,
      () => false,
    );
    if (isCalled) called.push(name);
  }
  await client.close();
  offered = [];
  const before = drops();
  const response = await fetch(`${server.url}/v1/responses`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({
      ...{ model: "m", input: "Drop it.", store: false },
      tools: [{ type: "mcp", server_label: "crm", require_approval: "never" }],
    }),
  });
  const text = await response.text();
  if (offered.length === 0) throw new Error(`${response.status} ${text}`);
  return { listed, called, offered: offered[0]?.toSorted(), dropped: drops() - before };
}

const everything = { listed: all, called: all, offered: ["crm__drop", "crm__note"], dropped: 1 };
const noteAlone = { listed: ["crm_note"], called: ["crm_note"], offered: ["crm__note"], dropped: 0 };

const membership = async () => {
  const { data } = (await olga.ask("/v1/members")) as { data: { id: string; email: string }[] };
  return `/v1/members/${data.find(({ email }) => email === person.email)?.id}`;
};

test.each<[string, () => Browser, () => Promise<string> | string, () => string]>([
  ["a key", () => mary, () => `/v1/keys/${key.id}`, () => key.key],
  ["an app", () => olga, () => `/v1/apps/${app.id}`, () => tokens.access_token],
  ["a grant", () => mary, () => `/v1/authorizations/${app.id}:${accountId}`, () => tokens.access_token],
  ["an account, for its keys", () => olga, () => `/v1/admin/accounts/${accountId}`, () => key.key],
  ["an account, for apps", () => olga, () => `/v1/admin/accounts/${accountId}`, () => tokens.access_token],
  ["a membership, for the member's keys", () => olga, membership, () => key.key],
  ["a membership, for apps", () => olga, membership, () => tokens.access_token],
])(
  "applies the tool list of %s from the next request on, over /mcp and in responses",
  async (_, by, at, credential) => {
    const put = async (tools: string[] | null) => by().ask(await at(), { method: "PATCH", body: { tools } });
    expect(await gets(credential())).toEqual(everything);
    expect((await put(["crm/note"]))["tools"]).toEqual(["crm/note"]);
    expect(await gets(credential())).toEqual(noteAlone);
    expect((await put(null))["tools"]).toBeNull();
    expect(await gets(credential())).toEqual(everything);
  },
);

test("allows only tools in all lists of a chain, so that a grant adds nothing to the account's list", async () => {
  const account = `/v1/admin/accounts/${accountId}`;
  const grant = `/v1/authorizations/${app.id}:${accountId}`;
  await olga.ask(account, { method: "PATCH", body: { tools: ["crm/*", "mail"] } });
  await mary.ask(grant, { method: "PATCH", body: { tools: ["*/note", "weather"] } });
  expect(await gets(tokens.access_token)).toEqual(noteAlone);
  await olga.ask(account, { method: "PATCH", body: { tools: null } });
  await mary.ask(grant, { method: "PATCH", body: { tools: null } });
});

test("applies a person's tool choice for an app to its tokens and refreshed ones, and shows and keeps it", async () => {
  const other = await registerApp(server, { name: "Chooser", scopes: ["chat:write", "tools:use"] });
  const query = new URLSearchParams({
    ...{ response_type: "code", client_id: other.id, redirect_uri: other.redirectUri },
    scope: "chat:write tools:use",
  });
  const page = await mary.open(`/oauth/authorize?${query}`);
  expect(page.text).toContain("Tools that this app can use");
  const { leftFor } = await mary.press("Allow", { tools: "some", "server:crm": "on" });
  const code = leftFor?.searchParams.get("code") ?? "";
  const fields = { grant_type: "authorization_code", code, redirect_uri: other.redirectUri };
  const { body: first } = await askAsApp(server.url, "token", other, fields);
  const ofCrm = { listed: ["crm_drop", "crm_note"], called: ["crm_drop", "crm_note"], dropped: 1 };
  expect(await gets(String(first["access_token"]))).toMatchObject(ofCrm);
  const { body: next } = await askAsApp(server.url, "token", other, refreshFields(first["refresh_token"]));
  expect(await gets(String(next["access_token"]))).toMatchObject(ofCrm);
  const { data } = (await mary.ask("/v1/authorizations")) as {
    data: { app: { id: string }; tools: string[] | null }[];
  };
  expect(data.find((one) => one.app.id === other.id)?.tools).toEqual(["crm"]);
  expect((await mary.open("/settings")).text).toContain("of <strong>crm</strong> only");
  const again = await mary.open(`/oauth/authorize?${query}`);
  expect(again.text).toContain('name="server:crm" value="on" checked');
  expect(again.text).toContain('name="tools" value="some" checked');
});
