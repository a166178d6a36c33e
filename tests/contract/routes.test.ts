// The route table: nothing is served without a scope or an explicit `public`, and everything else wants a real key.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { scopes } from "../../src/domain/scope.ts";
import { type ApiRoute, isDescribed } from "../../src/http/exchange/route.ts";
import { createRoutes } from "../../src/http/routes.ts";
import { unlimited } from "../hostile/any-credential.ts";
import { addKey } from "../hostile/keys.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";

/** The table describes itself; its handlers, and so what they need, are never reached by building it. */
const all = createRoutes(new Proxy({}, { get: () => undefined }) as Parameters<typeof createRoutes>[0]);
/** Pages find out themselves who is signed in; their own tests say what they show to nobody. */
const routes = all.filter(isDescribed);
const closed = routes.filter((route) => route.access !== "public");
const scoped = closed.filter((route) => route.access !== "person");
const ofPeople = closed.filter((route) => route.access === "person");

/** Deny by default: whoever opens another endpoint to the world has to say so here as well. */
const openToAll = [
  "GET /.well-known/jwks.json",
  "GET /.well-known/oauth-authorization-server",
  "GET /.well-known/oauth-client/:server",
  "GET /.well-known/oauth-protected-resource/mcp",
  "GET /.well-known/oauth-protected-resource/mcp/:server",
  "GET /.well-known/oauth-protected-resource/v1",
  "GET /docs/api",
  "GET /health",
  "GET /healthz",
  "GET /openapi.json",
  "GET /ping",
  "GET /readyz",
  "GET /v1/health",
  "POST /oauth/device_authorization",
  "POST /oauth/introspect",
  "POST /oauth/register",
  "POST /oauth/revoke",
  "POST /oauth/token",
  "POST /sign-in/passkey",
  "POST /sign-in/passkey/options",
  "POST /v1/auth/token",
  "POST /v1/nodes",
];

let server: TestServer;

beforeAll(async () => {
  server = await startHeadrace({ addressLimits: unlimited });
});

afterAll(() => server[Symbol.asyncDispose]());

// hardening: K1
test("gives every route a known scope or public access, exactly as listed", () => {
  for (const route of routes) expect(["public", "person", ...scopes]).toContain(route.access);
  const open = routes.filter((route) => route.access === "public").map((route) => `${route.method} ${route.path}`);
  expect(open.sort()).toEqual(openToAll);
});

/** Lists that are given whole: operators, or a bound on what can be made, keep them short. */
const wholeLists = [
  "/v1/account/end-users",
  "/v1/admin/comparisons",
  "/v1/admin/documents",
  "/v1/admin/guardrails",
  "/v1/admin/model-processes",
  "/v1/admin/model-processes/:id/output",
  "/v1/admin/models",
  "/v1/admin/node-tokens",
  "/v1/admin/nodes",
  "/v1/admin/pulled-models",
  "/v1/admin/refusals",
  "/v1/admin/signing-keys",
  "/v1/admin/tiers",
  "/v1/admin/tool-servers",
  "/v1/admin/upstreams",
  "/v1/admin/webhooks",
  "/v1/model-status",
  "/v1/passkeys",
  "/v1/refusals",
  "/v1/tiers",
  "/v1/tools/connections",
  "/v1/webhooks",
];

/** Pages of more than 100 entries: reports, and what clients of the vendors' APIs ask for at once. */
const longPages = {
  "/v1/admin/requests": 200,
  "/v1/admin/usage": 1_000,
  "/v1/apps/:id/usage": 1_000,
  "/v1/files": 10_000,
  "/v1/keys/:id/usage": 1_000,
  "/v1/messages/batches": 1_000,
  "/v1/models": 1_000,
  "/v1/requests": 200,
  "/v1/usage": 1_000,
};

test("every list has pages of at most 100 entries, or is named here with its bound", () => {
  const bounds = routes.flatMap(({ method, path, doc }): [string, number | null | undefined][] => {
    const { json } = doc.response;
    if (method !== "GET" || !(json instanceof z.ZodObject) || !(json.shape["data"] instanceof z.ZodArray)) return [];
    const limit: unknown = doc.query?.shape["limit"];
    const number = limit instanceof z.ZodDefault ? limit.def.innerType : limit;
    return [[path, number instanceof z.ZodNumber ? number.maxValue : undefined]];
  });
  expect(bounds.flatMap(([path, bound]) => (bound === undefined ? [path] : [])).sort()).toEqual(wholeLists);
  const long = bounds.filter(([, bound]) => bound === null || (bound ?? 0) > 100);
  expect(Object.fromEntries(long)).toEqual(longPages);
});

test("routes no method and path twice, and names every operation uniquely", () => {
  const places = all.map((route) => `${route.method} ${route.path}`);
  expect(new Set(places).size).toBe(places.length);
  const names = routes.map((route) => route.doc.operationId);
  expect(new Set(names).size).toBe(names.length);
});

function send(route: ApiRoute, headers: Record<string, string>): Promise<Response> {
  const hasBody = route.doc.requestBody !== undefined;
  return fetch(server.url + route.path.replace("*", "some-model").replace(/:\w+/g, "some-id"), {
    method: route.method,
    headers: { ...headers, ...(hasBody ? { "content-type": "application/json" } : {}) },
    ...(hasBody ? { body: "{}" } : {}),
  });
}

const refused = {
  error: { message: invalidApiKeyMessage, type: "invalid_request_error", code: "invalid_api_key" },
};

const named = (some: readonly ApiRoute[]) => some.map((route) => ({ name: `${route.method} ${route.path}`, route }));

/** An error as the route's API has it. */
function inFormOf({ errorForm }: ApiRoute, response: Response, error: { message: string }) {
  if (errorForm !== "anthropic") return { error };
  const type = response.status === 401 ? "authentication_error" : "permission_error";
  return { type: "error", error: { type, message: error.message }, request_id: response.headers.get("request-id") };
}

describe.each(named(closed))("$name", ({ route }) => {
  // hardening: K1
  test("returns 401 from a protected route without a key", async () => {
    const response = await send(route, {});
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual(inFormOf(route, response, refused.error));
    expect(response.headers.get("www-authenticate")).toStartWith('Bearer realm="headrace", resource_metadata="');
  });

  test.each(["live", "test", "dev"] as const)(
    "returns 401 from a protected route for a fabricated, well-formed %s key",
    async (environment) => {
      const key = generateApiKey(environment);
      for (const headers of [{ authorization: `Bearer ${key}` }, { "x-api-key": key }]) {
        const response = await send(route, headers as Record<string, string>);
        expect(response.status).toBe(401);
        expect(await response.json()).toEqual(inFormOf(route, response, refused.error));
        expect(response.headers.get("www-authenticate")).toStartWith(
          'Bearer realm="headrace", error="invalid_token", ',
        );
      }
    },
  );
});

describe.each(named(ofPeople))("$name", ({ route }) => {
  test("says that a route is for people to a key with every scope", async () => {
    const response = await send(route, { authorization: `Bearer ${await addKey(server, { scopes: [...scopes] })}` });
    expect(response.status).toBe(403);
    expect((await response.json()).error.code).toBe("permission_denied");
  });
});

describe.each(named(scoped))("$name", ({ route }) => {
  // hardening: K1
  test("returns 403 with the missing scope to a key with every other scope", async () => {
    const key = await addKey(server, { scopes: scopes.filter((scope) => scope !== route.access) });
    const response = await send(route, { authorization: `Bearer ${key}` });
    expect(response.status).toBe(403);
    const error = {
      message: `API key lacks required scope: ${route.access}`,
      type: "permission_error",
      code: "insufficient_scope",
    };
    expect(await response.json()).toEqual(inFormOf(route, response, error));
    // Clients of tools are told where to ask for it as well.
    const challenge = response.headers.get("www-authenticate")?.replace(/, resource_metadata="[^"]*\/mcp[^"]*"$/, "");
    expect(challenge).toBe(`Bearer realm="headrace", error="insufficient_scope", scope="${route.access}"`);
  });

  test("accepts a key with only the route's scope", async () => {
    const key = await addKey(server, { scopes: [route.access as (typeof scopes)[number]] });
    const { status } = await send(route, { authorization: `Bearer ${key}` });
    // 405: there is no session of tools to follow. 415: it is for forms. 426: it is a WebSocket.
    expect([200, 400, 404, 405, 415, 426]).toContain(status);
  });
});

test("refuses a wrong credential before the body is read", async () => {
  const response = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body: "\0garbage" });
  expect(response.status).toBe(401);
});
