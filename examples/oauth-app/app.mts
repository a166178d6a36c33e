// A third-party web app: people sign in with their Headrace and chat with the models of their own account.
// Needs one library, npm install openid-client, and Node 22.18 or Bun; with an older Node: npx tsx app.mts
// Register the app at the Headrace with the redirect URI http://127.0.0.1:3000/callback and the scopes below, then:
// HEADRACE_URL=http://127.0.0.1:7545 CLIENT_ID=app_… CLIENT_SECRET=… PORT=3000 node app.mts
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { env } from "node:process";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import * as oauth from "openid-client";

const { HEADRACE_URL = "http://127.0.0.1:7545", CLIENT_ID = "", CLIENT_SECRET = "", PORT = "3000" } = env;
const scope = "chat:write models:read";
const headrace = new URL(HEADRACE_URL);
// Plain http is for a server on this machine alone; anywhere else tokens need https.
const execute = headrace.protocol === "http:" && headrace.hostname === "127.0.0.1" ? [oauth.allowInsecureRequests] : [];
// Endpoints and features come from /.well-known/oauth-authorization-server (RFC 8414).
const client = await oauth.discovery(headrace, CLIENT_ID, CLIENT_SECRET, undefined, { algorithm: "oauth2", execute });

/** `pending` went to Headrace with the browser, until it comes back. */
interface Session {
  pending?: { state: string; verifier: string };
  tokens?: { access: string; refresh: string; expiresMs: number };
  renewal?: Promise<void>;
}

// In memory: a restart signs everybody out. A real app keeps them in its database, the tokens encrypted.
const sessions = new Map<string, Session>();
const idOf = (req: IncomingMessage) => /(?:^|; )oauth_app=([\w-]+)/.exec(req.headers.cookie ?? "")?.[1] ?? "";

/** A new id for each sign-in, in a cookie that no script can read. Behind https, add `Secure`. */
function startSession(session: Session, req: IncomingMessage, res: ServerResponse): void {
  sessions.delete(idOf(req));
  if (sessions.size >= 1000) sessions.clear();
  const id = randomBytes(32).toString("base64url");
  sessions.set(id, session);
  res.setHeader("set-cookie", `oauth_app=${id}; Path=/; HttpOnly; SameSite=Lax`);
}

function keep(session: Session, tokens: Awaited<ReturnType<typeof oauth.refreshTokenGrant>>): void {
  const expiresMs = Date.now() + ((tokens.expires_in ?? 60) - 30) * 1000;
  session.tokens = { access: tokens.access_token, refresh: tokens.refresh_token ?? "", expiresMs };
}

/** fetch with the person's access token, a new one where it has run out: each refresh token works once, so ask once. */
async function asPerson(session: Session, path: string, init: RequestInit = {}): Promise<Response> {
  if (session.tokens && Date.now() > session.tokens.expiresMs) {
    const renewed = () => oauth.refreshTokenGrant(client, session.tokens?.refresh ?? "");
    session.renewal ??= renewed()
      .then((tokens) => keep(session, tokens))
      .finally(() => delete session.renewal);
    await session.renewal;
  }
  const headers = { authorization: `Bearer ${session.tokens?.access}`, "content-type": "application/json" };
  return fetch(new URL(path, headrace), { ...init, headers });
}

const browserScript = `const form = document.querySelector("form"), answer = document.querySelector("pre");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  answer.textContent = "";
  const response = await fetch("/chat", { method: "POST", body: JSON.stringify(Object.fromEntries(new FormData(form))) });
  let rest = response.ok ? "" : "It failed: " + response.status;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const lines = (rest + piece.value).split("\\n");
    rest = lines.pop();
    for (const line of lines.filter((line) => line.startsWith("data: {"))) {
      const { choices, error } = JSON.parse(line.slice(6));
      answer.append(error ? error.message : choices[0]?.delta.content ?? "");
    }
  }
  answer.append(rest);
});`;

const escaped = (value: string) => value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'";

function page(res: ServerResponse, body: string): void {
  res.writeHead(200, { "content-type": "text/html; charset=utf-8", "content-security-policy": policy });
  res.end(`<!doctype html><html lang="en"><title>Chat</title><h1>Chat with your own models</h1>${body}</html>`);
}

async function home(res: ServerResponse, session: Session | undefined): Promise<void> {
  const answer = session?.tokens && (await asPerson(session, "/v1/models").catch(() => undefined));
  // Not signed in, or the person revoked the app at Headrace.
  if (!answer?.ok) return page(res, `<p><a href="/sign-in">Sign in with Headrace</a></p>`);
  const models = ((await answer.json()) as { data: { id: string }[] }).data;
  const options = models.map(({ id }) => `<option>${escaped(id)}</option>`).join("");
  const fields = `<select name="model">${options}</select> <input name="prompt" aria-label="Prompt" required size="60">`;
  page(res, `<form>${fields} <button>Ask</button></form><pre></pre><script src="/app.js" type="module"></script>`);
}

/** `state` binds the answer to this browser, the PKCE verifier binds the code to this sign-in (RFC 9700, 2.1.1 and 4.7). */
async function signIn(req: IncomingMessage, res: ServerResponse, redirect_uri: string): Promise<void> {
  const [state, verifier] = [oauth.randomState(), oauth.randomPKCECodeVerifier()];
  startSession({ pending: { state, verifier } }, req, res);
  const challenge = { code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256" };
  const url = oauth.buildAuthorizationUrl(client, { redirect_uri, scope, state, ...challenge });
  res.writeHead(303, { location: url.href }).end();
}

/** The library checks `state` and `iss` (RFC 9207) and throws for an `error`, as when the person said no. */
async function callback(req: IncomingMessage, res: ServerResponse, url: URL, { pending }: Session): Promise<void> {
  const session: Session = {};
  const checks = { expectedState: pending?.state ?? "", pkceCodeVerifier: pending?.verifier ?? "" };
  keep(session, await oauth.authorizationCodeGrant(client, url, checks));
  startSession(session, req, res);
  res.writeHead(303, { location: "/" }).end();
}

/** The answer goes to the browser as it comes, and ends at Headrace when the browser leaves. */
async function chat(req: IncomingMessage, res: ServerResponse, session: Session): Promise<void> {
  const { model, prompt } = JSON.parse(await text(req)) as { model: string; prompt: string };
  const left = new AbortController();
  res.on("close", () => left.abort());
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: prompt }] });
  const answer = await asPerson(session, "/v1/chat/completions", { method: "POST", body, signal: left.signal });
  res.writeHead(answer.status, { "content-type": answer.ok ? "text/event-stream" : "application/json" });
  if (answer.body) await pipeline(answer.body, res);
}

const address = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const server = createServer(async (req, res) => {
  const origin = address();
  const url = new URL(req.url ?? "/", origin);
  const session = sessions.get(idOf(req));
  const route = `${req.method} ${url.pathname}`;
  try {
    // What does something must come from a page of this app.
    if (req.method === "POST" && req.headers.origin !== origin) res.writeHead(403).end();
    else if (route === "GET /") await home(res, session);
    else if (route === "GET /app.js") res.writeHead(200, { "content-type": "text/javascript" }).end(browserScript);
    else if (route === "GET /sign-in") await signIn(req, res, `${origin}/callback`);
    else if (route === "GET /callback" && session?.pending) await callback(req, res, url, session);
    else if (route === "POST /chat" && session?.tokens) await chat(req, res, session);
    else res.writeHead(404).end();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    if (!res.headersSent) res.writeHead(req.method === "GET" ? 303 : 502, { location: "/" });
    res.end();
  }
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(address()));
