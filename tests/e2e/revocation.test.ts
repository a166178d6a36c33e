// A credential that is revoked while it is in steady use: refused within a second, and never again served.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

interface Made {
  id: string;
  key: string;
}

async function makeKey(by: string, body: Record<string, unknown> = {}): Promise<Made> {
  const response = await server.request("/v1/keys", {
    body: { name: "Steady", scopes: ["chat:write", "keys:manage", "models:read"], ...body },
    headers: { authorization: `Bearer ${by}` },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Made;
}

/** Steady load with one credential by several clients; when each answer began, and its status. */
function load(credential: string) {
  const seen: { sentAt: number; status: number }[] = [];
  let running = true;
  const clients = Array.from({ length: 8 }, async () => {
    while (running) {
      const sentAt = performance.now();
      const response = await server.request("/v1/chat/completions", {
        body: { model: "upstream-model", messages: [{ role: "user", content: "x" }] },
        headers: { authorization: `Bearer ${credential}` },
      });
      await response.text();
      seen.push({ sentAt, status: response.status });
    }
  });
  return {
    seen,
    async stop() {
      running = false;
      await Promise.all(clients);
    },
  };
}

const revokeOverHttp = async ({ id }: Made) => {
  const response = await server.request(`/v1/keys/${id}`, { method: "DELETE" });
  expect(response.status).toBe(200);
};

/** Revokes as another process on this machine would, with nobody to tell the server. */
const revokeInDatabase = async ({ id }: Made) => {
  const { Database } = await import("bun:sqlite");
  const db = new Database(`${server.dataDir}/headrace.db`);
  db.run("PRAGMA busy_timeout = 5000");
  db.transaction(() => {
    db.run("UPDATE api_keys SET revoked_at = ? WHERE id = ?", [Math.floor(Date.now() / 1000), id]);
    db.run("UPDATE credential_revision SET revision = revision + 1");
  }).immediate();
  db.close();
};

async function tokenOf(key: string): Promise<string> {
  const response = await server.request("/v1/auth/token", { body: { api_key: key } });
  expect(response.status).toBe(200);
  return ((await response.json()) as { access_token: string }).access_token;
}

// hardening: K8
test.each([
  { what: "a key", credentialOf: async (key: string) => key, revoke: revokeOverHttp, withinMs: 0 },
  { what: "a token of the key", credentialOf: tokenOf, revoke: revokeOverHttp, withinMs: 0 },
  {
    what: "a key made by the key",
    credentialOf: async (key: string) => (await makeKey(key, { scopes: ["chat:write"] })).key,
    revoke: revokeOverHttp,
    withinMs: 0,
  },
  {
    what: "a key that another process revokes",
    credentialOf: async (key: string) => key,
    revoke: revokeInDatabase,
    withinMs: 1_000,
  },
  {
    what: "a token whose key another process revokes",
    credentialOf: tokenOf,
    revoke: revokeInDatabase,
    withinMs: 1_000,
  },
])(
  "refuses $what within its bound after revocation, under steady load, for good",
  async ({ credentialOf, revoke, withinMs }) => {
    const made = await makeKey(server.key);
    const steady = load(await credentialOf(made.key));
    await until(() => steady.seen.length > 20, "the credential is in steady use");
    expect(steady.seen.every(({ status }) => status === 200)).toBe(true);
    await revoke(made);
    const revokedAt = performance.now();
    await Bun.sleep(withinMs + 500);
    const seenLate = () => steady.seen.filter(({ sentAt }) => sentAt > revokedAt + withinMs);
    await until(() => seenLate().length > 20, "it goes on to be used");
    await steady.stop();
    const late = seenLate();
    expect(new Set(late.map(({ status }) => status))).toEqual(new Set([401]));
  },
);

test("refuses a revoked key from the answer of any revocation on, also if several revoke it at once", async () => {
  const ask = ({ key }: Made) =>
    server.request("/v1/chat/completions", {
      body: { model: "upstream-model", messages: [{ role: "user", content: "x" }] },
      headers: { authorization: `Bearer ${key}` },
    });
  for (let round = 0; round < 10; round++) {
    const made = await makeKey(server.key);
    const before = await Promise.all(Array.from({ length: 12 }, () => ask(made)));
    expect(before.map(({ status }) => status)).toEqual(before.map(() => 200));
    const after = Array.from({ length: 12 }, async () => {
      await revokeOverHttp(made);
      return (await ask(made)).status;
    });
    expect(await Promise.all(after)).toEqual(after.map(() => 401));
  }
});
