// An app's access that ends while the app is in steady use: refused at once, nothing admitted later, nobody else touched.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { type Browser, invite, removeAccess, setUp } from "../support/browser.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import {
  type AppTokens,
  codeFor,
  postAsApp,
  type RegisteredApp,
  redeem,
  registerApp,
  signInTo,
} from "../support/oauth-apps.ts";
import { chatScript, chunk, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople } from "../support/server-people.ts";

const password = "lamp gravel otter seven";
const clients = 6;

let upstream: ScriptedUpstream;
let server: TestServer;
let olga: Browser;
/** Streams that are held open, by what was asked. */
const held = new Map<string, ServerResponse>();
let members = 0;

beforeAll(async () => {
  upstream = await startUpstream(async (request, res) => {
    const { user } = request.body as { user?: string };
    if (user === undefined) return chatScript()(request, res);
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "before " }));
    held.set(user, res);
  });
  // By it the server tells whose stream to hold.
  const yaml = upstreamYaml(upstream).replace("name: up", "name: up, identifiers: as_sent");
  server = await startHeadrace({ yaml });
  olga = await setUp(server);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function ask(credential: string, more: object = {}): Promise<Response> {
  return server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "x" }], ...more },
    headers: { authorization: `Bearer ${credential}` },
  });
}

interface Seen {
  sentAt: number;
  status: number;
}

/** Steady load with one credential by several clients. */
function load(credential: string) {
  const seen: Seen[] = [];
  let running = true;
  const all = Array.from({ length: clients }, async () => {
    while (running) {
      const sentAt = performance.now();
      const response = await ask(credential);
      await response.text();
      seen.push({ sentAt, status: response.status });
    }
  });
  return {
    seen,
    async stop() {
      running = false;
      await Promise.all(all);
    },
  };
}

const statuses = (seen: readonly Seen[]) => [...new Set(seen.map(({ status }) => status))];

interface Grants {
  app: RegisteredApp;
  tokens: AppTokens;
  /** The browser of the member who allowed the app. */
  browser: Browser;
}

function newMember(): Promise<Browser> {
  const name = `mo${++members}`;
  return invite(olga, { person: { email: `${name}@example.test`, name, password } });
}

/** An app that a member allowed; a new one, by somebody new, where not given. */
async function grants(given: Partial<Pick<Grants, "app" | "browser">> = {}): Promise<Grants> {
  const browser = given.browser ?? (await newMember());
  const app = given.app ?? (await registerApp(server, { name: "Notes" }));
  return { app, browser, tokens: await signInTo(app, server, browser) };
}

async function membershipOf(browser: Browser): Promise<string> {
  const session = (await (await browser.request("/v1/session")).json()) as { accounts: { membership_id: string }[] };
  return session.accounts[0]?.membership_id ?? "";
}

async function requireOk(response: Response | Promise<Response>): Promise<void> {
  expect((await response).status).toBe(200);
}

interface Ending {
  what: string;
  /** Whose other grants go on: those of the app by other people, and those of the person to other apps. */
  leaves: readonly ("app" | "browser")[];
  end(grants: Grants): Promise<unknown>;
}

const both = ["app", "browser"] as const;
const endings: Ending[] = [
  {
    what: "removing its access in the settings",
    leaves: both,
    end: ({ app, browser }) => removeAccess(browser, app.id),
  },
  {
    what: "DELETE /v1/authorizations",
    leaves: both,
    async end({ app, browser }) {
      const list = (await (await browser.request("/v1/authorizations")).json()) as { data: { id: string }[] };
      const { id = "" } = list.data.find((one) => one.id.startsWith(app.id)) ?? {};
      await requireOk(browser.request(`/v1/authorizations/${id}`, { method: "DELETE" }));
    },
  },
  {
    what: "deleting the app",
    leaves: ["browser"],
    end: ({ app }) => requireOk(server.request(`/v1/apps/${app.id}`, { method: "DELETE" })),
  },
  {
    what: "removing the membership of whoever allowed it",
    leaves: ["app"],
    end: async ({ browser }) =>
      requireOk(olga.request(`/v1/members/${await membershipOf(browser)}`, { method: "DELETE" })),
  },
  {
    what: "/oauth/revoke with its refresh token",
    leaves: both,
    end: ({ app, tokens }) => requireOk(postAsApp(app, `${server.url}/oauth/revoke`, { token: tokens.refresh_token })),
  },
  {
    what: "/oauth/revoke with its access token",
    leaves: both,
    end: ({ app, tokens }) => requireOk(postAsApp(app, `${server.url}/oauth/revoke`, { token: tokens.access_token })),
  },
];

/** Every client of each load has asked some times after that time, and none asks any more. */
async function stopAfter(time: number, loads: readonly ReturnType<typeof load>[]): Promise<void> {
  await until(() => loads.every(({ seen }) => since(time, seen).length >= 4 * clients), "all went on asking");
  await Promise.all(loads.map(({ stop }) => stop()));
}

const since = (time: number, seen: readonly Seen[]) => seen.filter(({ sentAt }) => sentAt > time);

// hardening: A13
test.each(endings)(
  "stops an app's inference at once under load by $what, and nothing else",
  async ({ what, leaves, end }) => {
    const ended = await grants();
    const { access_token, refresh_token } = ended.tokens;
    const untouched = [server.key, (await grants()).tokens.access_token];
    for (const kept of leaves) untouched.push((await grants({ [kept]: ended[kept] })).tokens.access_token);
    const stream = await ask(access_token, { stream: true, user: what });
    await until(() => held.has(what), "the stream is open");
    const [own, ...others] = [load(access_token), ...untouched.map(load)];
    await until(() => [own, ...others].every(({ seen }) => seen.length >= 2 * clients), "all are in use");
    expect(statuses(own.seen)).toEqual([200]);

    await end(ended);
    const endedAt = performance.now();
    await stopAfter(endedAt, [own, ...others]);
    expect(statuses(since(endedAt, own.seen))).toEqual([401]);
    for (const { seen } of others) expect(statuses(seen)).toEqual([200]);
    expect(await (await ask(access_token)).json()).toMatchObject({ error: { code: "invalid_api_key" } });
    const form = { grant_type: "refresh_token", refresh_token };
    const renewed = (await (await postAsApp(ended.app, `${server.url}/oauth/token`, form)).json()) as object;
    expect(renewed).toMatchObject({ error: leaves.includes("app") ? "invalid_grant" : "invalid_client" });

    // docs/apps.md: a request that was admitted before goes on to its end.
    held.get(what)?.end(`${chunk({ content: "and after" })}${chunk({}, "stop")}data: [DONE]\n\n`);
    const text = await stream.text();
    expect(text).toContain("and after");
    expect(text).toEndWith("data: [DONE]\n\n");
  },
);

const byThePersonOrTheAccount = endings.filter(({ what }) => !what.startsWith("/oauth/revoke"));

test.each(byThePersonOrTheAccount)("revokes an app's pending code by $what", async ({ leaves, end }) => {
  const ended = await grants();
  const code = await codeFor(ended.app, ended.browser);
  await end(ended);
  const answer = await (await redeem(ended.app, server, code)).json();
  expect(answer).toMatchObject({ error: leaves.includes("app") ? "invalid_grant" : "invalid_client" });
});

// hardening: A13
test.each(endings)("issues no working token to an app during $what", async ({ end }) => {
  const ended = await grants();
  const got = [ended.tokens];
  let refusal: unknown;
  const refreshing = (async () => {
    while (refusal === undefined) {
      const { refresh_token } = got.at(-1) ?? ended.tokens;
      const form = { grant_type: "refresh_token", refresh_token };
      const response = await postAsApp(ended.app, `${server.url}/oauth/token`, form);
      const answer = await response.json();
      if (response.ok) got.push(answer as AppTokens);
      else refusal = answer;
    }
  })();
  await until(() => got.length > 3, "the app has refreshed");
  await end(ended);
  await refreshing;
  expect(refusal).toMatchObject({ error: expect.stringMatching(/^invalid_(?:grant|client)$/) });
  const answers = await Promise.all(got.map(({ access_token }) => ask(access_token)));
  expect([...new Set(answers.map(({ status }) => status))]).toEqual([401]);
});

// hardening: A13
test("refuses a grant ended by another process within a second, under load", async () => {
  const ended = await grants();
  const other = await grants({ app: ended.app });
  const loads = [load(ended.tokens.access_token), load(other.tokens.access_token)] as const;
  const [own, untouched] = loads;
  await until(() => loads.every(({ seen }) => seen.length >= 2 * clients), "both are in use");
  const { people, write, event, close } = openServerPeople(server);
  const membershipId = await membershipOf(ended.browser);
  await write(() => people.removeMembership(membershipId, event("member.updated")));
  const endedAt = performance.now();
  await close();
  await stopAfter(endedAt + 1_000, loads);
  expect(statuses(since(endedAt + 1_000, own.seen))).toEqual([401]);
  expect(statuses(untouched.seen)).toEqual([200]);
});
