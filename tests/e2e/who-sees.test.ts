// The page docs/reference/who-sees-what.md: each endpoint that reads is tried as each of the six readers.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Reader, readers, sightOf, sights } from "../../scripts/who-sees.ts";
import { accountScopes, type Scope, scopes } from "../../src/domain/scope.ts";
import { createRoutes } from "../../src/http/routes.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { registerApp } from "../support/oauth-apps.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../support/server-people.ts";

type Headers = Record<string, string>;

const unreached = new Proxy({}, { get: () => undefined });
const routes = createRoutes(unreached as Parameters<typeof createRoutes>[0]);
const appScopes = accountScopes.filter((scope) => scope !== "keys:manage");
const said = "A PROMPT OF THE MEMBER";

let upstream: ScriptedUpstream;
let server: TestServer;
let people: ServerPeople;
let headersOf: Record<Reader, Headers>;
let member: SignedInMember;
/** The ids of what the member stored, with the same text in each. */
let stored: Record<"chat" | "request" | "response" | "conversation" | "file" | "batch", string>;

beforeAll(async () => {
  upstream = await startUpstream(chatScript());
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  people = openServerPeople(server);
  const [owner, admin] = [await people.addMember("owner"), await people.addMember("admin")];
  member = await people.addMember("member");
  const app = await registerApp(server, { name: "Notes", scopes: appScopes });
  const { accountId } = server.firstKey.record;
  const bearer = async (of: readonly Scope[]) => ({
    authorization: `Bearer ${await mintKey(server.dataDir, { scopes: of, accountId })}`,
  });
  headersOf = {
    operator: await bearer(scopes),
    ...{ owner: owner.reading, admin: admin.reading, member: member.reading },
    app: (await people.allow(member, { appId: app.id })).headers,
    key: await bearer(accountScopes),
  };
  const answer = await server.request("/v1/chat/completions", {
    headers: (await people.allow(member)).headers,
    body: { model: "upstream-model", store: true, messages: [{ role: "user", content: said }] },
  });
  const { id: chat } = (await answer.json()) as { id: string };
  const login = (await people.allow(member)).headers;
  const post = async (path: string, body: object) => {
    const made = await server.request(path, { headers: login, body });
    return ((await made.json()) as { id: string }).id;
  };
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new File([said], "said.jsonl"));
  const uploaded = await fetch(`${server.url}/v1/files`, { method: "POST", headers: login, body: form });
  const { id: file } = (await uploaded.json()) as { id: string };
  const items = [{ type: "message", role: "user", content: said }];
  stored = {
    ...{ chat, file, request: answer.headers.get("x-request-id") ?? "" },
    response: await post("/v1/responses", {
      model: "upstream-model",
      input: said,
      store: true,
      metadata: { of: said },
    }),
    conversation: await post("/v1/conversations", { items }),
    batch: await post("/v1/batches", {
      ...{ input_file_id: file, endpoint: "/v1/chat/completions", completion_window: "24h", metadata: { of: said } },
    }),
  };
}, 60_000);

afterAll(async () => {
  people.close();
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function read(path: string, reader: Reader): Promise<{ status: number; text: string }> {
  const response = await fetch(server.url + path, { headers: headersOf[reader] });
  return { status: response.status, text: await response.text() };
}

const readable = routes.filter(
  ({ method, access }) => method === "GET" && !["page", "machine", "public"].includes(access ?? ""),
);

test.each(readable.map((route) => [route.path, route] as const))(
  "refuses GET %s to the readers that the page names, and to no other",
  async (path, route) => {
    const sight = sightOf(route);
    expect(sight).toBeDefined();
    if (sight === undefined) return;
    for (const reader of readers) {
      const cell = sights[sight].cells[reader];
      // An operator's key has no role: what persons see of themselves is theirs.
      if (cell === "as in their role") continue;
      const { status } = await read(path.replace(/:\w+|\*/g, "x"), reader);
      expect([reader, path, status === 401 || status === 403]).toEqual([reader, path, cell.startsWith("refused")]);
    }
  },
);

test("shows what a member stored to the readers that the page names, and no operator any prompt of it", async () => {
  for (const path of [
    `/v1/chat/completions/${stored.chat}/messages`,
    `/v1/responses/${stored.response}/input_items`,
    `/v1/conversations/${stored.conversation}/items`,
    `/v1/files/${stored.file}/content`,
    `/v1/batches/${stored.batch}`,
  ]) {
    expect(sightOf({ path, access: "chat:read" })).toBe("content");
    for (const reader of readers) {
      const { text } = await read(path, reader);
      const cell = sights.content.cells[reader];
      // An operator's key reads as a key of its own account, which is the member's here.
      const seen = cell.startsWith("all that the account stored") || cell === "own" || reader === "operator";
      expect([path, reader, text.includes(said)]).toEqual([path, reader, seen]);
    }
  }
  const elsewhere = await read("/v1/admin/requests?limit=200&environment=dev", "operator");
  expect(elsewhere.text).toContain(stored.request);
  const one = await read(`/v1/admin/requests/${stored.request}`, "operator");
  for (const { status, text } of [elsewhere, one]) {
    expect(status).toBe(200);
    expect(text).not.toContain(said);
  }
});
