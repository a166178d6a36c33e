// examples/oauth-app as it is started by its reader, against a scripted authorization server: what it refuses, and what it streams.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { join } from "node:path";

const program = join(import.meta.dir, "..", "..", "examples", "oauth-app", "app.mts");
const sse = ['data: {"choices":[{"delta":{"content":"I am "}}]}\n\n', "data: [DONE]\n\n"] as const;

interface Issued {
  challenge: string;
  expiresIn: number;
}

let issuer: string;
let stop: () => Promise<void>;
let app: string;
let child: Bun.Subprocess;
/** By code: what a redemption has to fit. */
const codes = new Map<string, Issued>();
const forms: URLSearchParams[] = [];
let tokensMade = 0;
let completion: { body: unknown; aborted: Promise<void> } | undefined;
let releaseStream: () => void = () => {};

beforeAll(async () => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: headrace });
  issuer = `http://127.0.0.1:${server.port}`;
  stop = () => server.stop(true);
  child = Bun.spawn([process.execPath, program], {
    env: { HEADRACE_URL: issuer, CLIENT_ID: "app_1", CLIENT_SECRET: "secret", PORT: "0", PATH: "" },
    stdout: "pipe",
    stderr: "ignore",
  });
  const { value } = await (child.stdout as ReadableStream<Uint8Array>).getReader().read();
  app = new TextDecoder().decode(value).trim();
});

afterEach(() => {
  forms.length = 0;
  codes.clear();
});

afterAll(async () => {
  child.kill();
  await child.exited;
  await stop();
});

async function headrace(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === "/.well-known/oauth-authorization-server") return Response.json(metadata());
  if (pathname === "/oauth/token") return token(new URLSearchParams(await request.text()));
  const authorization = request.headers.get("authorization");
  if (authorization !== `Bearer access-${tokensMade}`) return Response.json({}, { status: 401 });
  if (pathname === "/v1/models")
    return Response.json({ data: [{ id: "tiny" }, { id: '"><script>alert(1)</script>' }] });
  const { promise, resolve } = Promise.withResolvers<void>();
  request.signal.addEventListener("abort", () => resolve());
  completion = { body: await request.json(), aborted: promise };
  const released = new Promise<void>((resolve) => {
    releaseStream = resolve;
  });
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(Buffer.from(sse[0]));
      await released;
      controller.enqueue(Buffer.from(sse[1]));
      controller.close();
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

function metadata() {
  return {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
  };
}

function token(form: URLSearchParams): Response {
  forms.push(form);
  const code = codes.get(form.get("code") ?? "");
  const digest = createHash("sha256")
    .update(form.get("code_verifier") ?? "")
    .digest("base64url");
  if (form.get("grant_type") === "authorization_code" && digest !== code?.challenge) {
    return Response.json({ error: "invalid_grant" }, { status: 400 });
  }
  tokensMade += 1;
  return Response.json({
    access_token: `access-${tokensMade}`,
    token_type: "Bearer",
    expires_in: code?.expiresIn ?? 3600,
    refresh_token: `refresh-${tokensMade}`,
  });
}

/** A browser that keeps one cookie and follows nothing. */
function browser() {
  let cookie = "";
  return {
    get cookie() {
      return cookie;
    },
    async visit(path: string, init: RequestInit = {}): Promise<Response> {
      const headers = { cookie, ...(init.headers as Record<string, string> | undefined) };
      const response = await fetch(new URL(path, app), { ...init, headers, redirect: "manual" });
      const set = response.headers.get("set-cookie");
      if (set !== null) cookie = set.split(";")[0] ?? "";
      return response;
    },
  };
}

/** Where a person who says yes is sent back to, with these changes. */
async function approved(
  visitor: ReturnType<typeof browser>,
  changes: Record<string, string | undefined> = {},
  expiresIn = 3600,
) {
  const to = new URL((await visitor.visit("/sign-in")).headers.get("location") ?? "");
  const asked = Object.fromEntries(to.searchParams);
  codes.set("code-1", { challenge: asked["code_challenge"] ?? "", expiresIn });
  const back = new URL(asked["redirect_uri"] ?? "");
  const answer = { code: "code-1", state: asked["state"], iss: issuer, ...changes };
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) back.searchParams.set(name, value);
  return { asked, back: back.href };
}

async function signedIn(expiresIn = 3600) {
  const visitor = browser();
  const { back } = await approved(visitor, {}, expiresIn);
  await visitor.visit(back);
  return visitor;
}

const ask = (visitor: ReturnType<typeof browser>, origin: string, signal?: AbortSignal) =>
  visitor.visit("/chat", {
    method: "POST",
    headers: { origin },
    body: '{"model":"tiny","prompt":"Who are you?"}',
    ...(signal ? { signal } : {}),
  });

test("keeps the example app under 150 lines", async () => {
  const lines = (await Bun.file(program).text()).trimEnd().split("\n");
  expect(lines.length).toBeLessThan(150);
});

test("signs a person in by code and PKCE, with an HttpOnly cookie and a new session id", async () => {
  const visitor = browser();
  expect(await (await visitor.visit("/")).text()).toContain("Sign in with Headrace");
  const { asked, back } = await approved(visitor);
  expect(asked).toMatchObject({
    response_type: "code",
    client_id: "app_1",
    redirect_uri: `${app}/callback`,
    scope: "chat:write models:read",
    code_challenge_method: "S256",
  });
  const before = visitor.cookie;
  const arrived = await visitor.visit(back);
  expect([arrived.status, arrived.headers.get("location")]).toEqual([303, "/"]);
  expect(arrived.headers.get("set-cookie")).toContain("HttpOnly; SameSite=Lax");
  expect(visitor.cookie).not.toBe(before);
  expect(Object.fromEntries(forms[0] ?? [])).toMatchObject({
    redirect_uri: `${app}/callback`,
    client_secret: "secret",
  });
  const home = await visitor.visit("/");
  expect(home.headers.get("content-security-policy")).toContain("default-src 'none'");
  const page = await home.text();
  expect(page).toContain("<option>tiny</option>");
  expect(page).not.toContain("<script>alert");
});

test.each([
  ["another state", { state: "x" }],
  ["no state", { state: undefined }],
  ["another issuer", { iss: "https://evil.example" }],
  ["no issuer", { iss: undefined }],
  ["a refusal", { code: undefined, error: "access_denied" }],
])("signs nobody in and redeems no code for an answer with %s", async (_what, changes) => {
  const visitor = browser();
  const { back } = await approved(visitor, changes);
  await visitor.visit(back);
  expect(forms).toEqual([]);
  expect(await (await visitor.visit("/")).text()).toContain("Sign in with Headrace");
});

test("refuses an authorization answer that another browser requested", async () => {
  const { back } = await approved(browser());
  const victim = browser();
  expect((await victim.visit(back)).status).toBe(404);
  const own = browser();
  await own.visit("/sign-in");
  await own.visit(back);
  expect(forms).toEqual([]);
});

test("accepts an authorization answer once", async () => {
  const visitor = browser();
  const { back } = await approved(visitor);
  await visitor.visit(back);
  expect((await visitor.visit(back)).status).toBe(404);
  expect(forms).toHaveLength(1);
});

test("streams a chat in the example app, and stops it at the server when the browser leaves", async () => {
  const visitor = await signedIn();
  const response = await ask(visitor, app);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  // The rest is held back until this has arrived.
  expect(new TextDecoder().decode((await reader.read()).value)).toBe(sse[0]);
  releaseStream();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe(sse[1]);
  expect(completion?.body).toEqual({
    model: "tiny",
    stream: true,
    messages: [{ role: "user", content: "Who are you?" }],
  });
  const leaving = new AbortController();
  await ask(visitor, app, leaving.signal);
  leaving.abort();
  await completion?.aborted;
});

test("refuses requests from another site's page and without a session", async () => {
  const visitor = await signedIn();
  expect((await ask(visitor, "https://evil.example")).status).toBe(403);
  expect((await ask(browser(), app)).status).toBe(404);
});

test("renews an expired access token once for concurrent requests", async () => {
  const visitor = await signedIn(1);
  await Promise.all([visitor.visit("/"), visitor.visit("/"), visitor.visit("/")]);
  expect(forms.map((form) => form.get("grant_type"))).toEqual(["authorization_code", "refresh_token"]);
  expect(await (await visitor.visit("/")).text()).toContain("<option>tiny</option>");
});
