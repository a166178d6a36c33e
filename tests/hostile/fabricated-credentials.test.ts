// Credentials that nobody was given, on every route that there is: one answer for all of them, and nothing comes of it.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { createRoutes } from "../../src/http/routes.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { basicHeader, registerApp } from "../support/oauth-apps.ts";
import { openServerPeople } from "../support/server-people.ts";
import { fabricatedCookie, fabricatedToken, unlimited } from "./any-credential.ts";
import { addKey } from "./keys.ts";
import { stateOf } from "./management-state.ts";
import { describedBy, formType, type Operation, pageOperations } from "./operations.ts";

let server: TestServer;
/** By what they are: headers with a credential that looks right in every way but that it was never given out. */
const fabricated: [what: string, headers: Record<string, string>][] = [];
let operations: readonly Operation[] = [];

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

beforeAll(async () => {
  server = await startHeadrace({ addressLimits: unlimited });
  ({ operations } = await describedBy(server));
  const people = openServerPeople(server);
  const owner = await people.addMember("owner", { isOperator: true });
  const { grantId, headers } = await people.allow(owner);
  const { keys } = (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] };
  const [, claims = ""] = headers.authorization.split(".");
  // The claims of a genuine token of a person, under the name of the genuine key.
  const head = Buffer.from(JSON.stringify({ alg: "ES256", typ: "at+jwt", kid: keys[0]?.kid })).toString("base64url");
  const signature = Buffer.alloc(64, 7).toString("base64url");
  using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const { digest } = db.query("SELECT digest FROM api_keys WHERE kind = 'key' LIMIT 1").get() as { digest: string };
  const { digest: session } = db.query("SELECT digest FROM sessions LIMIT 1").get() as { digest: string };
  for (const environment of ["live", "test", "dev"] as const) {
    fabricated.push([`a ${environment} key`, bearer(generateApiKey(environment))]);
    fabricated.push([`a ${environment} key as X-API-Key`, { "x-api-key": generateApiKey(environment) }]);
  }
  const sent = { origin: server.url, "x-csrf-token": owner.headers["x-csrf-token"] ?? "" };
  fabricated.push(
    ["a token under another key", bearer(fabricatedToken(server.url))],
    ["a person's token with another signature", bearer(`${head}.${claims}.${signature}`)],
    ["a person's token without one", bearer(`${head}.${claims}.`)],
    ["the id of a key", bearer(server.firstKey.record.id)],
    ["the id of a grant", bearer(grantId)],
    ["the id of a membership", bearer(owner.membership.id)],
    ["what the database has of a key", bearer(digest)],
    ["what the database has of a key, as X-API-Key", { "x-api-key": digest }],
    ["a refresh token", bearer(Buffer.alloc(32, 7).toString("base64url"))],
    ["a join token", bearer(`hrn_${"0".repeat(32)}`)],
    ["a session", { cookie: fabricatedCookie(), ...sent }],
    ["what the database has of a session", { cookie: `headrace_session=${session}`, ...sent }],
    ["the id of a session", { cookie: `headrace_session=${owner.sessionId}`, ...sent }],
    ["a key as a session", { cookie: `headrace_session=${server.key}`, ...sent }],
  );
  await people.close();
});

afterAll(() => server[Symbol.asyncDispose]());

/** What would be right but for who asks. */
function send({ method, path, body }: Operation, headers: Record<string, string>): Promise<Response> {
  return fetch(server.url + path.replaceAll(/\{\w+\}/g, "some-id"), {
    method,
    redirect: "manual",
    headers: { ...(body ? { "content-type": body.isForm ? formType : "application/json" } : {}), ...headers },
    ...(body ? { body: JSON.stringify(body.example ?? {}) } : {}),
  });
}

const refused = `{"error":{"message":"${invalidApiKeyMessage}","type":"invalid_request_error","code":"invalid_api_key"}}`;
const refusedAsAnthropic = `{"type":"error","error":{"type":"authentication_error","message":"${invalidApiKeyMessage}"},"request_id":`;

function saysRefused(text: string): boolean {
  return text === refused || text.startsWith(refusedAsAnthropic);
}

// hardening: K1
test("answers 401 to a fabricated credential of any kind on every authenticated route, and changes nothing", async () => {
  const closed = operations.filter(({ isOpen }) => !isOpen);
  expect(closed.length).toBeGreaterThan(80);
  const before = stateOf(server);
  const opened: string[] = [];
  for (const operation of closed) {
    const answers = await Promise.all(
      fabricated.map(async ([what, headers]) => {
        const response = await send(operation, headers);
        const challenge = response.headers.get("www-authenticate") ?? "";
        const isRefused =
          response.status === 401 && saysRefused(await response.text()) && challenge.startsWith("Bearer realm=");
        return isRefused ? [] : [`${what}: ${operation.method} ${operation.path} ${response.status}`];
      }),
    );
    opened.push(...answers.flat());
  }
  expect(opened).toEqual([]);
  expect(stateOf(server)).toBe(before);
}, 60_000);

// hardening: K1
test("refuses every fabricated credential in a body", async () => {
  const app = await registerApp(server);
  const opaque = Buffer.alloc(32, 7).toString("base64url");
  const before = stateOf(server);
  const asJson = async (path: string, body: unknown) => {
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", origin: server.url },
      body: JSON.stringify(body),
    });
    return [path, response.status];
  };
  const asForm = async (path: string, fields: Record<string, string>, headers = {}) => {
    const response = await fetch(server.url + path, { method: "POST", headers, body: new URLSearchParams(fields) });
    const { error, active } = (await response.json()) as { error?: string; active?: boolean };
    return [path, response.status, error ?? active];
  };
  const byApp = basicHeader(app.id, app.secret);
  const keys = [generateApiKey("live"), generateApiKey("dev"), server.firstKey.record.id, fabricatedToken(server.url)];
  for (const api_key of keys) {
    expect(await asJson("/v1/auth/token", { api_key })).toEqual(["/v1/auth/token", 401]);
  }
  const join = { token: `hrn_${"0".repeat(32)}`, name: "gpu-1", public_key: "A".repeat(43) };
  expect(await asJson("/v1/nodes", join)).toEqual(["/v1/nodes", 403]);
  for (const grant of [
    { grant_type: "authorization_code", code: opaque, redirect_uri: app.redirectUri, code_verifier: opaque },
    { grant_type: "refresh_token", refresh_token: opaque },
    { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code: opaque },
  ]) {
    expect(await asForm("/oauth/token", grant, byApp)).toEqual(["/oauth/token", 400, "invalid_grant"]);
    const wrong = basicHeader(app.id, opaque);
    expect(await asForm("/oauth/token", grant, wrong)).toEqual(["/oauth/token", 401, "invalid_client"]);
  }
  for (const token of [opaque, fabricatedToken(server.url), generateApiKey("dev")]) {
    expect(await asForm("/oauth/introspect", { token }, byApp)).toEqual(["/oauth/introspect", 200, false]);
    expect(
      (
        await fetch(`${server.url}/oauth/revoke`, {
          method: "POST",
          headers: byApp,
          body: new URLSearchParams({ token }),
        })
      ).status,
    ).toBe(200);
  }
  expect(stateOf(server)).toBe(before);
});

// hardening: K1
test("treats a fabricated session like none on every page", async () => {
  const cookies = fabricated.flatMap(([, headers]) => (headers["cookie"] === undefined ? [] : [headers["cookie"]]));
  expect(cookies.length).toBe(4);
  const seen = async (operation: Operation, headers: Record<string, string>) => {
    const response = await send(operation, { ...headers, origin: server.url });
    await response.text();
    return [operation.method, operation.path, response.status, response.headers.get("location")];
  };
  for (const page of pageOperations()) {
    const asNobody = await seen(page, {});
    for (const cookie of cookies) expect(await seen(page, { cookie })).toEqual(asNobody);
  }
});

// hardening: K1
test("refuses fabricated credentials on machine routes, which need a signature, and on metrics, which need an operator", async () => {
  const machine = createRoutes(new Proxy({}, { get: () => undefined }) as Parameters<typeof createRoutes>[0]).filter(
    ({ access }) => access === "machine",
  );
  expect(machine.length).toBeGreaterThan(1);
  const good = bearer(await addKey(server));
  for (const { method, path } of machine) {
    // An operator reads the metrics with a key.
    for (const headers of [...(path === "/metrics" ? [] : [good]), ...fabricated.map(([, some]) => some)]) {
      const response = await fetch(server.url + path.replace(/:\w+/g, "some-id"), { method, headers });
      expect([path, response.status >= 400 && response.status < 500]).toEqual([path, true]);
      await response.text();
    }
  }
});
