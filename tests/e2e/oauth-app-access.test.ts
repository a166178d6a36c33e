// What an app may do with a person's token, as the `openai` package sees it: whose it is, what it costs, what it sees.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AuthenticationError, NotFoundError, PermissionDeniedError } from "openai";
import { type Browser, invite, setUp } from "../support/browser.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { type AppTokens, postAsApp, type RegisteredApp, registerApp, signInTo } from "../support/oauth-apps.ts";
import { raised } from "../support/openai-errors.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const messages = [{ role: "user" as const, content: "Hello?" }];
const clock = shiftedClock();
const password = "lamp gravel otter seven";

let upstream: ScriptedUpstream;
let server: TestServer;
let olga: Browser;
let apps = 0;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
  olga = await setUp(server);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** An app of the first account that may have all that an app may have. */
function newApp(): Promise<RegisteredApp> {
  return registerApp(server, {
    name: `App ${++apps}`,
    scopes: ["chat:read", "chat:write", "models:read", "usage:read"],
  });
}

/** An access token of the app, once the person at the browser has allowed it. */
async function tokenOf(app: RegisteredApp, browser: Browser, scope?: string): Promise<string> {
  return (await signInTo(app, server, browser, scope)).access_token;
}

const clientOf = (key: string) => openaiClient({ url: server.url, key });

interface UsageRow {
  app?: string | null;
  requests: number;
  total_tokens: number;
}

async function usageRows(response: Response | Promise<Response>): Promise<UsageRow[]> {
  const answer = await response;
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: UsageRow[] }).data;
}

describe("an app's token", () => {
  test("lists models and chats, whole and streamed, with an app's token and the official package", async () => {
    const client = clientOf(await tokenOf(await newApp(), olga));
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([model]);
    const whole = await client.chat.completions.create({ model, messages });
    expect(whole.choices[0]?.message.content).toBe("Hello world");
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    const pieces: string[] = [];
    for await (const { choices } of stream) pieces.push(choices[0]?.delta.content ?? "");
    expect(pieces.join("")).toBe("Hello world");
  });

  test("books an app's token to the person's account and shows the app to person, account and app", async () => {
    const app = await newApp();
    const client = clientOf(await tokenOf(app, olga));
    await client.chat.completions.create({ model, messages });
    await client.chat.completions.create({ model, messages });
    const used = { requests: 2, total_tokens: 18 };
    const ofApp = (rows: UsageRow[]) => rows.filter((row) => row.app === app.id);
    const byApp = "/v1/usage?group_by=app";
    expect(ofApp(await usageRows(server.request(byApp)))).toEqual([expect.objectContaining(used)]);
    expect(ofApp(await usageRows(olga.request(byApp)))).toEqual([expect.objectContaining(used)]);
    expect(await usageRows(server.request(`/v1/apps/${app.id}/usage`))).toEqual([expect.objectContaining(used)]);
    const own = await client.get<{ data: UsageRow[] }>("/usage?group_by=app");
    expect(own.data).toEqual([expect.objectContaining({ ...used, app: app.id })]);
  });

  test("charges an app's use to the account that allowed it, never to the app's publisher", async () => {
    const made = await olga.request("/v1/admin/accounts", { method: "POST", body: { name: "Harbour", tier: "pro" } });
    const account = ((await made.json()) as { id: string }).id;
    const person = { email: "hana@example.test", name: "Hana", password };
    const hana = await invite(olga, { role: "owner", person, account });
    const app = await newApp();
    await clientOf(await tokenOf(app, hana)).chat.completions.create({ model, messages });
    const used = { requests: 1, total_tokens: 9 };
    const byApp = "/v1/usage?group_by=app";
    expect(await usageRows(hana.request(byApp))).toEqual([expect.objectContaining({ ...used, app: app.id })]);
    expect((await usageRows(server.request(byApp))).map((row) => row.app)).not.toContain(app.id);
    // The publisher learns how much its app is used, and not by whom.
    const published = await usageRows(server.request(`/v1/apps/${app.id}/usage?group_by=app`));
    expect(published).toEqual([expect.objectContaining(used)]);
    expect(JSON.stringify(published)).not.toContain(account);
    expect((await hana.request(`/v1/apps/${app.id}/usage`)).status).toBe(404);
  });

  test("limits an app's token to the allowed scopes", async () => {
    const app = await newApp();
    const reader = clientOf(await tokenOf(app, olga, "models:read"));
    expect((await reader.models.list()).data).toHaveLength(1);
    const refused = async (scope: string, call: () => PromiseLike<unknown>) => {
      const { code, message } = await raised(call, PermissionDeniedError);
      expect([code, message]).toEqual(["insufficient_scope", `403 API key lacks required scope: ${scope}`]);
    };
    await refused("chat:write", () => reader.chat.completions.create({ model, messages }));
    await refused("chat:read", () => reader.chat.completions.list());
    await refused("usage:read", () => reader.get("/usage"));
    const whole = clientOf(await tokenOf(app, olga));
    await refused("keys:manage", () => whole.get("/keys"));
    await refused("keys:manage", () => whole.get("/apps"));
    await refused("admin:manage", () => whole.get("/admin/accounts"));
    for (const path of ["/session", "/members", "/authorizations"]) {
      expect((await raised(() => whole.get(path), PermissionDeniedError)).code).toBe("permission_denied");
    }
  });

  test("shows an app's token only chats that the app stored for this person", async () => {
    const mo = await invite(olga, { person: { email: "mo@example.test", name: "Mo", password } });
    const [one, other] = [await newApp(), await newApp()];
    const clients = {
      mine: clientOf(await tokenOf(one, olga)),
      sameAppOtherPerson: clientOf(await tokenOf(one, mo)),
      otherAppSamePerson: clientOf(await tokenOf(other, olga)),
      key: openaiClient(server),
    };
    const ids = new Map<string, string>();
    for (const [who, client] of Object.entries(clients)) {
      ids.set(who, (await client.chat.completions.create({ model, messages, store: true })).id);
    }
    for (const who of ["mine", "sameAppOtherPerson", "otherAppSamePerson"] as const) {
      const seen = await Array.fromAsync(clients[who].chat.completions.list());
      expect([who, seen.map(({ id }) => id)]).toEqual([who, [ids.get(who) ?? ""]]);
      for (const [stranger, id] of ids) {
        if (stranger === who) continue;
        await raised(() => clients[who].chat.completions.retrieve(id), NotFoundError);
        await raised(() => clients[who].chat.completions.delete(id), NotFoundError);
      }
    }
    // A later sign-in of the same person is not another person.
    const again = clientOf(await tokenOf(one, olga));
    expect((await Array.fromAsync(again.chat.completions.list())).map(({ id }) => id)).toEqual([ids.get("mine") ?? ""]);
  });

  test("accepts an app's token of the development environment on this machine alone", async () => {
    const token = await tokenOf(await newApp(), olga);
    const headers = { authorization: `Bearer ${token}` };
    expect((await server.request("/v1/models", { headers })).status).toBe(200);
    const passedOn = await server.request("/v1/models", { headers: { ...headers, "x-forwarded-for": "203.0.113.9" } });
    expect(passedOn.status).toBe(401);
    expect(await passedOn.json()).toMatchObject({ error: { code: "invalid_api_key" } });
  });

  test("expires an app's token after an hour with its own error, and accepts its successor", async () => {
    const app = await newApp();
    const tokens = await signInTo(app, server, olga);
    clock.shift(3_601);
    const client = clientOf(tokens.access_token);
    const { code, message } = await raised(() => client.models.list(), AuthenticationError);
    expect([code, message]).toEqual(["token_expired", "401 Token has expired"]);
    const form = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
    const renewed = (await (await postAsApp(app, `${server.url}/oauth/token`, form)).json()) as AppTokens;
    expect((await clientOf(renewed.access_token).models.list()).data).toHaveLength(1);
  });
});
