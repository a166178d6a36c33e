// In a real browser: a person is asked about clients that no account registered, and sees who has verified what.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Browser, setUp } from "../support/browser.ts";
import { operator, pagesOf, startCallback } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, phone, type VisitorOptions } from "../support/chromium.ts";
import { type DocumentHost, startDocumentHost } from "../support/client-documents.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let host: DocumentHost;
let server: TestServer;
let at: string;
let handler: Browser;
let callback: ReturnType<typeof startCallback>;

beforeAll(async () => {
  host = startDocumentHost();
  server = await startHeadrace({ documentFetch: { resolve: host.resolve, ca: host.ca } });
  at = pagesOf(server);
  callback = startCallback();
  handler = await setUp(server, { person: operator });
});

afterAll(async () => {
  leaveBrowser();
  await callback.stop();
  await server[Symbol.asyncDispose]();
  host[Symbol.dispose]();
});

async function ada(options: Partial<VisitorOptions> = {}) {
  const visitor = await openVisitor({ at, others: callback.hosts, ...options });
  const cookies = [...handler.cookies].map(([name, value]) => ({ name, value, url: at }));
  await visitor.context.addCookies(cookies.map((cookie) => ({ ...cookie, httpOnly: true, sameSite: "Lax" })));
  return visitor;
}

function request(client_id: string, path: string): string {
  const code_challenge = new Bun.CryptoHasher("sha256").update("v".repeat(43)).digest("base64url");
  const parameters = { client_id, redirect_uri: callback.loopbackUri, resource: `${server.url}${path}`, state: "s-1" };
  const rest = { response_type: "code", code_challenge, code_challenge_method: "S256" };
  return `/oauth/authorize?${new URLSearchParams({ ...parameters, ...rest })}`;
}

test("shows a metadata document client with its host, and continues to a program on this computer", async () => {
  const url = host.document("/oauth/cli-client-metadata.json", {
    ...{ client_name: "Command line of tests", client_uri: "https://client.example/about" },
    redirect_uris: [callback.loopbackUri],
  });
  await using visitor = await ada();
  await visitor.go(request(url, "/mcp"));
  expect(await visitor.heading()).toBe("Allow Command line of tests to act on your behalf?");
  await look(visitor, "consent-document", { referrerPolicy: "no-referrer" });
  await visitor.press("Allow");
  await visitor.page.waitForURL(`${callback.loopbackUri}?**`);
  const answer = Object.fromEntries(callback.seen.at(-1)?.searchParams ?? []);
  expect(answer).toMatchObject({ state: "s-1", iss: server.url });
  const form = { grant_type: "authorization_code", client_id: url, redirect_uri: callback.loopbackUri };
  const body = new URLSearchParams({ ...form, code: String(answer["code"]), code_verifier: "v".repeat(43) });
  expect((await fetch(`${server.url}/oauth/token`, { method: "POST", body })).status).toBe(200);
  await visitor.go("/settings");
  expect(await visitor.page.getByText(new URL(url).host).count()).toBe(1);
  expect(visitor.trouble).toEqual([]);
});

test("marks a self-registered client as unverified, on a small screen too", async () => {
  const body = JSON.stringify({ client_name: "Head\u0433ace", redirect_uris: [callback.loopbackUri] });
  const headers = { "content-type": "application/json" };
  const registered = await fetch(`${server.url}/oauth/register`, { method: "POST", headers, body });
  const { client_id } = (await registered.json()) as { client_id: string };
  await using visitor = await ada({ size: phone });
  await visitor.go(request(client_id, "/mcp/github"));
  await look(visitor, "consent-registered", { referrerPolicy: "no-referrer" });
  expect(await visitor.page.getByText("Its name is not verified").count()).toBe(1);
  expect(await visitor.page.getByText("although its name suggests that").count()).toBe(1);
  await visitor.press("Deny");
  await visitor.page.waitForURL(`${callback.loopbackUri}?**`);
  expect(callback.seen.at(-1)?.searchParams.get("error")).toBe("access_denied");
  expect(visitor.trouble).toEqual([]);
});
