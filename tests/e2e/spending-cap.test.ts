// The spending cap that a person sets when they allow an app: one budget for all sign-ins of the app.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { type Browser, setUp } from "../support/browser.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type AppTokens, type RegisteredApp, redeem, registerApp } from "../support/oauth-apps.ts";
import { type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let olga: Browser;

beforeAll(async () => {
  upstream = await startUpstream();
  const price = "price: { input: 100000, output: 100000 }";
  const deployments = "deployments: [{ upstream: scripted, model: upstream-model }]";
  server = await startHeadrace({
    yaml: `upstreams: [{ name: scripted, url: "${upstream.url}" }]\nmodels: [{ id: priced, ${price}, ${deployments} }]\n`,
  });
  olga = await setUp(server);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const verifier = "v".repeat(43);

async function signInWith(app: RegisteredApp, cap: string): Promise<AppTokens> {
  const query = new URLSearchParams({
    ...{ response_type: "code", client_id: app.id, redirect_uri: app.redirectUri, prompt: "consent" },
    ...{ code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256" },
  });
  await olga.open(`/oauth/authorize?${query}`);
  const { leftFor } = await olga.press("Allow", { spend_cap: cap });
  const response = await redeem(app, server, { code: leftFor?.searchParams.get("code") ?? "", verifier });
  expect(response.status).toBe(200);
  return (await response.json()) as AppTokens;
}

async function capsOf({ access_token: token }: AppTokens): Promise<unknown[]> {
  const response = await server.request("/v1/limits", { headers: { authorization: `Bearer ${token}` } });
  const { quotas } = (await response.json()) as { quotas: Record<string, unknown>[] };
  return quotas
    .filter(({ owner }) => owner === "app")
    .map(({ reason, unit, amount, per }) => [reason, unit, amount, per]);
}

test("limits all sign-ins of an app by the cap that the person set last, and keeps it if the field is left empty", async () => {
  const app = await registerApp(server);
  const free = await signInWith(app, "");
  expect(await capsOf(free)).toEqual([]);
  const capped = await signInWith(app, "2.50");
  for (const one of [free, capped]) expect(await capsOf(one)).toEqual([["app_quota", "usd", 2.5, "month"]]);
  const later = await signInWith(app, "");
  expect(await capsOf(later)).toEqual([["app_quota", "usd", 2.5, "month"]]);
  const raised = await signInWith(app, "$5");
  for (const one of [free, capped, later, raised])
    expect(await capsOf(one)).toEqual([["app_quota", "usd", 5, "month"]]);
});

test("refuses the requests of all sign-ins of an app once they have spent the cap", async () => {
  const app = await registerApp(server);
  const tokens = [await signInWith(app, "1.00"), await signInWith(app, "")];
  const ask = async ({ access_token: token }: AppTokens) => {
    const answer = await server.request("/v1/chat/completions", {
      headers: { authorization: `Bearer ${token}` },
      body: { model: "priced", max_tokens: 1, messages: [{ role: "user", content: "x" }] },
    });
    return { status: answer.status, text: await answer.text() };
  };
  const [first, second] = tokens as [AppTokens, AppTokens];
  // Nine tokens at 0.10 USD leave 0.10 USD, and each request needs 0.20 USD.
  expect((await ask(first)).status).toBe(200);
  for (const one of [first, second]) {
    const { status, text } = await ask(one);
    expect([status, text]).toEqual([403, expect.stringContaining("0.90 USD of 1.00 USD are used")]);
    expect(text).toContain('"reason":"app_quota"');
  }
});
