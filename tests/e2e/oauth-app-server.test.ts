// examples/oauth-app as a process beside a running server: a person goes through it at a browser, from its first page to its end.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { Browser, removeAccess, setUp, signIn } from "../support/browser.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type RegisteredApp, registerApp } from "../support/oauth-apps.ts";
import { chunk, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const program = join(import.meta.dir, "..", "..", "examples", "oauth-app", "app.mts");

let upstream: ScriptedUpstream;
let server: TestServer;
let registered: RegisteredApp;
let child: Bun.Subprocess<"ignore", "pipe", "ignore">;
/** Its origin. */
let app: string;
let finish: () => void = () => {};

beforeAll(async () => {
  upstream = await startUpstream(async (_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "first" }));
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    res.end(`${chunk({ content: " last" })}${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  await setUp(server);
  registered = await registerApp(server, { name: "Chatter", redirect_uris: ["http://127.0.0.1:3000/callback"] });
  child = Bun.spawn([process.execPath, program], {
    env: { HEADRACE_URL: server.url, CLIENT_ID: registered.id, CLIENT_SECRET: registered.secret, PORT: "0", PATH: "" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  });
  const { value } = await child.stdout.getReader().read();
  app = new TextDecoder().decode(value).trim();
});

afterAll(async () => {
  child.kill();
  await child.exited;
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** On the consent page, signed in at the Headrace on the way there. */
async function asked(): Promise<Browser> {
  const browser = new Browser(server.url, app);
  await browser.open(app);
  expect((await browser.follow("Sign in with Headrace")).url.pathname).toBe("/sign-in");
  await signIn(browser);
  expect(browser.page.text).toContain("Allow <bdi>Chatter</bdi> to act on your behalf?");
  return browser;
}

test("signs a person in to the example app, lists models, and streams an answer until access is removed", async () => {
  const browser = await asked();
  const home = await browser.press("Allow");
  expect(home.url.href).toBe(`${app}/`);
  expect(home.text).toContain("<option>upstream-model</option>");

  const body = { model: "upstream-model", prompt: "Who are you?" };
  const answer = await browser.request(`${app}/chat`, { method: "POST", body });
  expect(answer.headers.get("content-type")).toBe("text/event-stream");
  const decoder = new TextDecoder();
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  let text = "";
  while (!text.includes("first")) text += decoder.decode((await reader.read()).value);
  expect(text).not.toContain("last");
  finish();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += decoder.decode(piece.value);
  expect(text).toContain(" last");
  expect(text).toEndWith("data: [DONE]\n\n");
  expect(upstream.requests.at(-1)?.body).toMatchObject({ messages: [{ role: "user", content: "Who are you?" }] });

  await removeAccess(browser, registered.id);
  expect((await browser.open(app)).links).toContainEqual({ label: "Sign in with Headrace", href: "/sign-in" });
  expect((await browser.request(`${app}/chat`, { method: "POST", body })).status).toBe(401);
});

test("does not sign in a person who declines the example app, and allows another try", async () => {
  const browser = await asked();
  const home = await browser.press("Deny");
  expect([home.url.href, home.status]).toEqual([`${app}/`, 200]);
  expect(home.text).not.toContain("<option>");
  expect((await browser.follow("Sign in with Headrace")).url.pathname).toBe("/oauth/authorize");
});
