// In a real browser: names and texts that attackers choose are text on every page, and nothing of theirs runs or loads.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

/** Ends an attribute, a tag, a script and a template, and tells if any of it ran. */
const hostile = `"'><img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>{{1}}\${1}`;
const marked = "onerror=window.pwned=1";
/** Such as a model server that is somebody else's may have. */
const hostileModel = `evil/"><svg onload=window.pwned=1>`;

const words: Script = ({ body }, res) => {
  const choice = { index: 0, message: { role: "assistant", content: hostile }, finish_reason: "stop" };
  const head = { id: hostile, object: "chat.completion", created: 1, model: hostile };
  if (JSON.stringify(body).includes("refuse me")) json(res, 400, { error: { message: hostile, type: hostile } });
  else
    json(res, 200, {
      ...head,
      choices: [choice],
      usage: { prompt_tokens: 3, completion_tokens: 40, total_tokens: 43 },
    });
};

let world: DashboardWorld;
let upstream: ScriptedUpstream;
let appId: string;

beforeAll(async () => {
  upstream = await startUpstream(words);
  upstream.serves([{ id: hostileModel, object: "model" }]);
  world = await openDashboardWorld();
  const { server, browser } = world;
  const send = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await server.request(path, { body, headers });
    expect([path, response.status]).toEqual([path, 200]);
    return (await response.json()) as Record<string, string>;
  };
  const name = hostile.slice(0, 100);
  const { key } = await send("/v1/keys", { name });
  ({ id: appId = "" } = await send("/v1/apps", {
    name,
    homepage_url: "https://evil.example/?a=%22%3E%3Cimg",
    redirect_uris: ["https://evil.example/callback"],
  }));
  await browser.ask("/v1/admin/upstreams", { method: "POST", body: { name: "evil", url: upstream.url } });
  await until(() => server.catalog.find(hostileModel) !== undefined, "the model of the upstream");
  await browser.ask("/v1/admin/accounts", { method: "POST", body: { name, tier: "pro" } });
  const messages = [{ role: "user", content: hostile }];
  const from = { authorization: `Bearer ${key}`, "user-agent": hostile };
  await send(
    "/v1/chat/completions",
    { model: hostileModel, messages, store: true, metadata: { [hostile.slice(0, 60)]: hostile } },
    from,
  );
  const refused = { model: hostileModel, messages: [{ role: "user", content: "refuse me" }] };
  expect((await server.request("/v1/chat/completions", { body: refused, headers: from })).status).toBe(400);
  await server.request(`/v1/chat/completions`, { body: { model: hostile, messages }, headers: from });
  await server.governance.ledger.flush();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function expectText({ page, trouble }: Visitor, path: string): Promise<void> {
  const found = await page.evaluate(() => ({
    ran: (globalThis as { pwned?: unknown }).pwned ?? null,
    elements: document.querySelectorAll("img[src='x'], svg[onload], [onerror]").length,
  }));
  expect({ path, ...found }).toEqual({ path, ran: null, elements: 0 });
  // That the page itself is no page is no trouble; anything else that was not found would be told by its address.
  const complaints = trouble.filter((text) => !text.startsWith("console error: Failed to load resource"));
  expect([path, ...complaints]).toEqual([path]);
}

const pages = [
  ...["/", "/playground", "/catalog", "/prices", "/usage?by=model", "/usage?by=key", "/requests", "/chats", "/apps"],
  ...["/settings/api-keys", "/settings/limits", "/settings/members", "/settings/security", "/settings/audit-log"],
  ...[
    "/admin/upstreams",
    "/admin/nodes",
    "/admin/accounts",
    "/admin/people",
    "/admin/tiers",
    "/admin/audit-log",
    "/admin/system",
  ],
];

// hardening: K12
test("renders names, models, texts and errors as text on every dashboard page", async () => {
  await using visitor = await openVisitor({ at: world.server.url });
  await world.signIn(visitor.context);
  let shown = 0;
  for (const path of pages) {
    await visitor.go(path);
    await visitor.page.waitForLoadState("networkidle");
    await expectText(visitor, path);
    if ((await visitor.text()).includes(marked)) shown++;
  }
  // They were there to be run.
  expect(shown).toBeGreaterThanOrEqual(4);
}, 120_000);

// hardening: K12
test("renders an app's name as text on the consent page", async () => {
  await using visitor = await openVisitor({ at: world.server.url });
  await world.signIn(visitor.context);
  const query = new URLSearchParams({
    ...{ client_id: appId, redirect_uri: "https://evil.example/callback", response_type: "code" },
    ...{ scope: "models:read", state: hostile, code_challenge: "x".repeat(43), code_challenge_method: "S256" },
  });
  await visitor.go(`/oauth/authorize?${query}`);
  expect(await visitor.text()).toContain("<img src=x");
  await expectText(visitor, "/oauth/authorize");
});

// hardening: K12
test.each([
  `/sign-in?next=${encodeURIComponent(`/${hostile}`)}`,
  `/nothing/${encodeURIComponent(hostile)}`,
  `/oauth/authorize?client_id=${encodeURIComponent(hostile)}`,
  `/device?user_code=${encodeURIComponent(hostile)}`,
])("renders an address's content as text: %s", async (path) => {
  await using visitor = await openVisitor({ at: world.server.url });
  await visitor.go(path);
  await expectText(visitor, path);
});
