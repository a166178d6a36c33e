// Forged tokens, and credentials that end while they are in use: no race brings one back.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SignJWT } from "jose";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { unseal } from "../../src/policy/credentials/sealing.ts";
import { deriveKey, loadSecret } from "../../src/storage/files/secret-file.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { registerApp } from "../support/oauth-apps.ts";
import { chatScript, chunk, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople } from "../support/server-people.ts";

const rounds = long ? 200 : 15;
/** The system's, and a minute more for each round: how often an account may change its keys is not what this is about. */
let aheadMs = 0;
const clock: Clock = {
  nowSeconds: systemClock.nowSeconds,
  monotonicMs: () => systemClock.monotonicMs() + aheadMs,
};
/** Counts rounds. */
function* eachRound(): Generator<number> {
  for (let round = 0; round < rounds; round++) {
    aheadMs += 60_000;
    yield round;
  }
}

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const refused = `{"error":{"message":"${invalidApiKeyMessage}","type":"invalid_request_error","code":"invalid_api_key"}}`;

interface Made {
  id: string;
  key: string;
}

async function makeKey(by = server.key, body: Record<string, unknown> = {}): Promise<Made> {
  const response = await server.request("/v1/keys", {
    body: { name: "Racer", scopes: ["chat:write", "keys:manage", "models:read"], ...body },
    headers: { authorization: `Bearer ${by}` },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Made;
}

async function tokenOf(key: string, more: Record<string, unknown> = {}): Promise<string> {
  const response = await server.request("/v1/auth/token", { body: { api_key: key, ...more } });
  expect(response.status).toBe(200);
  return ((await response.json()) as { access_token: string }).access_token;
}

function chat(key: string, more: Record<string, unknown> = {}): Promise<Response> {
  return server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "x" }], ...more },
    headers: { authorization: `Bearer ${key}` },
  });
}

async function status(response: Promise<Response>): Promise<number> {
  const settled = await response;
  await settled.text();
  return settled.status;
}

const revoke = (id: string) => server.request(`/v1/keys/${id}`, { method: "DELETE" });

/** The access token of an app that a person allowed, as `tokenOf` has one of a key. */
async function appToken(): Promise<string> {
  const people = openServerPeople(server);
  const { id: appId } = await registerApp(server);
  const scopes = ["chat:write", "models:read"] as const;
  const { headers } = await people.allow(await people.addMember("owner"), { appId, scopes });
  await people.close();
  return headers.authorization.slice("Bearer ".length);
}

describe.each([
  { whose: "a key", make: () => tokenOf(server.key) },
  { whose: "an app", make: appToken },
])("forged tokens modelled on one of $whose", ({ whose, make: makeGenuine }) => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  let genuine = "";
  let header: Record<string, unknown> = {};
  let claims: Record<string, unknown> = {};
  let signingKey: CryptoKey;
  let foreignKey: CryptoKeyPair;

  beforeAll(async () => {
    genuine = await makeGenuine();
    [header, claims] = genuine
      .split(".")
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, "base64url").toString())) as [typeof header, typeof claims];
    using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
    const row = db.query("SELECT id, sealed_private_jwk FROM signing_keys").get() as Record<string, string>;
    const sealing = deriveKey(loadSecret(server.dataDir, undefined), "signing-key-seal-v1");
    const jwk = JSON.parse(unseal(row["sealed_private_jwk"] ?? "", sealing, row["id"] ?? "")) as JsonWebKey;
    const algorithm = { name: "ECDSA", namedCurve: "P-256" };
    signingKey = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["sign"]);
    foreignKey = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  });

  const sign = (changes: Record<string, unknown>, headers: Record<string, unknown> = {}, key = signingKey) => {
    const payload = { ...claims, ...changes };
    for (const [name, value] of Object.entries(payload)) if (value === undefined) delete payload[name];
    return new SignJWT(payload).setProtectedHeader({ ...header, alg: "ES256", ...headers }).sign(key);
  };
  const hmac = async (secret: string) => {
    const start = `${encode({ ...header, alg: "HS256" })}.${encode(claims)}`;
    return `${start}.${new Bun.CryptoHasher("sha256", secret).update(start).digest("base64url")}`;
  };
  const now = () => Math.floor(Date.now() / 1000);
  const publicJwk = async () =>
    (await (await server.request("/.well-known/jwks.json")).json()) as { keys: Record<string, string>[] };

  // hardening: A10
  test("accepts a correct token that this test signs itself", async () => {
    expect(await status(chat(await sign({})))).toBe(200);
  });

  const forgeries: readonly [name: string, make: () => string | Promise<string>][] = [
    ["alg none", () => `${encode({ ...header, alg: "none" })}.${encode(claims)}.`],
    [
      "alg none and a signature",
      () => `${encode({ ...header, alg: "none" })}.${encode(claims)}.${genuine.split(".")[2]}`,
    ],
    ["alg NONE", () => `${encode({ ...header, alg: "NONE" })}.${encode(claims)}.AA`],
    ["no signature", () => `${genuine.split(".").slice(0, 2).join(".")}.`],
    ["two parts", () => genuine.split(".").slice(0, 2).join(".")],
    ["four parts", () => `${genuine}.x`],
    ["a broken signature", () => `${genuine.slice(0, -4)}AAAA`],
    ["HS256 under the public key as JSON", async () => hmac(JSON.stringify((await publicJwk()).keys[0]))],
    ["HS256 under x of the public key", async () => hmac((await publicJwk()).keys[0]?.["x"] ?? "")],
    ["HS256 under nothing", () => hmac("")],
    ["a foreign key under the right kid", () => sign({}, {}, foreignKey.privateKey)],
    [
      "a foreign key in its own header",
      async () => sign({}, { jwk: await crypto.subtle.exportKey("jwk", foreignKey.publicKey) }, foreignKey.privateKey),
    ],
    [
      "a foreign key behind jku",
      () => sign({}, { jku: `${upstream.url}/jwks.json`, kid: "other" }, foreignKey.privateKey),
    ],
    ["another kid", () => sign({}, { kid: "sig_other" })],
    ["a kid that is a path", () => sign({}, { kid: "../../../../dev/null" })],
    ["a kid that is SQL", () => sign({}, { kid: "' OR '1'='1" })],
    ["kid __proto__", () => sign({}, { kid: "__proto__" })],
    ["no kid", () => sign({}, { kid: undefined })],
    ["a kid that is a list", () => sign({}, { kid: ["a"] })],
    ["typ JWT", () => sign({}, { typ: "JWT" })],
    ["no typ", () => sign({}, { typ: undefined })],
    [
      "an unknown critical header",
      () => `${encode({ ...header, crit: ["x"], x: 1 })}.${encode(claims)}.${genuine.split(".")[2]}`,
    ],
    ["another issuer", () => sign({ iss: "https://evil.example" })],
    ["another audience", () => sign({ aud: "https://evil.example/v1" })],
    ["another account", () => sign({ sub: "acct_other" })],
    ["another key", () => sign({ key_id: "key_other", client_id: "key_other" })],
    ["another client", () => sign({ client_id: "key_other" })],
    ["another environment", () => sign({ environment: "live" })],
    ["an environment that is none", () => sign({ environment: "__proto__" })],
    ["made in the future", () => sign({ iat: now() + 3_600, exp: now() + 7_200 })],
    ["not yet valid", () => sign({ nbf: now() + 3_600 })],
    ["exp as text", () => sign({ exp: String(now() + 60) })],
    [
      "exp infinite",
      () =>
        `${encode(header)}.${Buffer.from(JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e400')).toString("base64url")}.${genuine.split(".")[2]}`,
    ],
    ...["iss", "sub", "aud", "client_id", "scope", "iat", "exp", "jti", "key_id", "environment"].map(
      (name): [string, () => Promise<string>] => [`no ${name}`, () => sign({ [name]: undefined })],
    ),
    ["scope as a list", () => sign({ scope: ["chat:write"] })],
    ["claims that are a list", () => `${encode(header)}.${encode([])}.${genuine.split(".")[2]}`],
    ["claims of 3 kB", () => sign({ more: "x".repeat(3_500) })],
    ["an expired one under a foreign key", () => sign({ exp: now() - 10 }, {}, foreignKey.privateKey)],
    ["a token within blanks", () => `${genuine} ${genuine}`],
  ];

  // hardening: A10
  test.each(forgeries)("answers 401 with one message to a forged token: %s", async (_, make) => {
    const response = await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${await make()}` } });
    expect([response.status, await response.text()]).toEqual([401, refused]);
  });

  // hardening: K5
  test("refuses other spellings of a token with different unused bits", async () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const respelled = (part: string) =>
      [...alphabet]
        .map((last) => part.slice(0, -1) + last)
        .filter((other) => other !== part && Buffer.from(other, "base64url").equals(Buffer.from(part, "base64url")));
    const parts = genuine.split(".");
    const spellings = parts.flatMap((part, i) => respelled(part).map((other) => parts.with(i, other).join(".")));
    expect(spellings.length).toBeGreaterThanOrEqual(15);
    for (const text of [...spellings, `${genuine}=`, `${genuine}==`, `${genuine}A`, genuine.replaceAll("-", "+")]) {
      if (text === genuine) continue;
      expect([text, await status(chat(text))]).toEqual([text, 401]);
    }
    expect(await status(chat(genuine))).toBe(200);
  });

  if (whose !== "a key") return;
  // hardening: K7
  test("grants no scope beyond the key's, and no token by a token", async () => {
    const narrow = await makeKey(server.key, { scopes: ["models:read"] });
    const claimed = await sign({
      key_id: narrow.id,
      client_id: narrow.id,
      scope: "chat:write admin:manage keys:manage models:read",
    });
    expect(await status(server.request("/v1/models", { headers: { authorization: `Bearer ${claimed}` } }))).toBe(200);
    expect(await status(chat(claimed))).toBe(403);
    expect(await status(server.request("/v1/keys", { headers: { authorization: `Bearer ${claimed}` } }))).toBe(403);
    const again = await server.request("/v1/auth/token", { body: { api_key: genuine } });
    expect([again.status, await again.text()]).toEqual([401, refused]);
  });

  test("ends a token's key with the token at the latest", async () => {
    const token = await tokenOf(server.key, { expires_in: 60 });
    const response = await server.request("/v1/keys", {
      body: { name: "x" },
      headers: { authorization: `Bearer ${token}` },
    });
    const made = (await response.json()) as { expires_at: number | null };
    expect(response.status).toBe(200);
    expect(made.expires_at ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(now() + 60);
    const longer = await server.request("/v1/keys", {
      body: { name: "x", expires_in: 3_600 },
      headers: { authorization: `Bearer ${token}` },
    });
    expect(longer.status).toBe(403);
  });
});

/** 50 requests that begin before, while and after something happens; those that began after it are what counts. */
async function around(request: () => Promise<Response>, happens: () => Promise<Response>): Promise<number[]> {
  const seen: { sentAt: number; status: number }[] = [];
  const clients = Array.from({ length: 50 }, async (_, client) => {
    await Bun.sleep(client / 8);
    for (let i = 0; i < 3; i++) {
      const sentAt = performance.now();
      seen.push({ sentAt, status: await status(request()) });
    }
  });
  await Bun.sleep(2);
  expect(await status(happens())).toBe(200);
  const happenedAt = performance.now();
  await Promise.all(clients);
  for (let i = 0; i < 3; i++) seen.push({ sentAt: performance.now(), status: await status(request()) });
  return seen.filter(({ sentAt }) => sentAt > happenedAt).map((one) => one.status);
}

describe("credentials that end during use", () => {
  test.each([
    {
      what: "a warm key",
      credential: async (key: string) => {
        await status(chat(key));
        return key;
      },
    },
    { what: "a key that nobody has used yet", credential: async (key: string) => key },
    {
      what: "a warm token",
      credential: async (key: string) => {
        const token = await tokenOf(key);
        await status(chat(token));
        return token;
      },
    },
    { what: "a token that nobody has used yet", credential: (key: string) => tokenOf(key) },
    {
      what: "a key made by it",
      credential: async (key: string) => (await makeKey(key, { scopes: ["chat:write"] })).key,
    },
  ])(
    `serves no request that begins after a revocation, over ${rounds} rounds of 50 requests: $what`,
    async ({ credential }) => {
      for (const round of eachRound()) {
        const made = await makeKey();
        const used = await credential(made.key);
        const late = await around(
          () => chat(used),
          () => revoke(made.id),
        );
        expect([round, ...new Set(late)]).toEqual([round, 401]);
      }
    },
    120_000,
  );

  // hardening: K8
  test("ends keys that a key creates during its own revocation", async () => {
    for (const _ of eachRound()) {
      const maker = await makeKey();
      const made: string[] = [];
      const makers = Array.from({ length: 20 }, async () => {
        const response = await server.request("/v1/keys", {
          body: { name: "Late", scopes: ["chat:write"] },
          headers: { authorization: `Bearer ${maker.key}` },
        });
        const answer = (await response.json()) as { key?: string };
        if (answer.key !== undefined) made.push(answer.key);
        else expect(response.status).toBe(401);
        const token = await server.request("/v1/auth/token", { body: { api_key: maker.key } });
        const { access_token } = (await token.json()) as { access_token?: string };
        if (access_token !== undefined) made.push(access_token);
      });
      expect(await status(revoke(maker.id))).toBe(200);
      await Promise.all(makers);
      for (const key of made) expect(await status(chat(key))).toBe(401);
    }
  }, 60_000);

  test("revokes a key despite its own rapid changes to keys", async () => {
    const flooding = await makeKey();
    let running = true;
    const flood = Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; running; i++) {
        await status(
          server.request(`/v1/keys/${flooding.id}`, {
            method: "PATCH",
            body: { name: `Flood ${client} ${i}` },
            headers: { authorization: `Bearer ${flooding.key}` },
          }),
        );
      }
    });
    await Bun.sleep(300);
    const code = await status(revoke(flooding.id));
    running = false;
    await Promise.all(flood);
    aheadMs += 60_000;
    expect(code).toBe(200);
    expect(await status(chat(flooding.key))).toBe(401);
  });

  // hardening: K8
  test("does not undo a revocation by concurrent changes", async () => {
    for (const _ of eachRound()) {
      const made = await makeKey();
      const changes = Array.from({ length: 10 }, (_, i) =>
        server.request(`/v1/keys/${made.id}`, {
          method: "PATCH",
          body: { name: `Renamed ${i}`, expires_at: null, rate_limit: 1 + i },
        }),
      );
      const rotations = Array.from({ length: 5 }, () =>
        server.request(`/v1/keys/${made.id}/rotate`, { body: { overlap_seconds: 3_600 } }),
      );
      const ends = [revoke(made.id), revoke(made.id)];
      const answers = await Promise.all([...changes, ...rotations, ...ends]);
      expect(answers.filter(({ status }) => ![200, 400].includes(status))).toEqual([]);
      expect(await status(chat(made.key))).toBe(401);
      const record = (await (await server.request(`/v1/keys/${made.id}`)).json()) as {
        status: string;
        revoked_at: number;
      };
      expect(record.status).toBe("revoked");
      expect(record.revoked_at).toBeLessThanOrEqual(Math.floor(Date.now() / 1000));
    }
  }, 60_000);

  test("swaps old and new key at once in a rotation without overlap under load", async () => {
    for (const round of eachRound()) {
      const made = await makeKey();
      let fresh: Made | undefined;
      const late = await around(
        () => chat(made.key),
        async () => {
          const response = await server.request(`/v1/keys/${made.id}/rotate`, { body: { overlap_seconds: 0 } });
          fresh = (await response.clone().json()) as Made;
          return response;
        },
      );
      expect([round, ...new Set(late)]).toEqual([round, 401]);
      expect(await status(chat(fresh?.key ?? ""))).toBe(200);
    }
  }, 120_000);

  test("creates one successor for 20 concurrent rotations of a key", async () => {
    for (const _ of eachRound()) {
      const made = await makeKey();
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => server.request(`/v1/keys/${made.id}/rotate`, { body: {} })),
      );
      const codes = answers.map((answer) => answer.status).sort();
      expect(codes).toEqual([200, ...Array(19).fill(400)]);
    }
  }, 60_000);

  test("applies a removed scope to all requests after the answer", async () => {
    for (const round of eachRound()) {
      const made = await makeKey();
      const narrow = () =>
        server.request(`/v1/keys/${made.id}`, { method: "PATCH", body: { scopes: ["models:read"] } });
      const late = await around(() => chat(made.key), narrow);
      expect([round, ...new Set(late)]).toEqual([round, 403]);
    }
  }, 120_000);

  test("finishes and books a stream of a revoked key, and starts nothing new", async () => {
    const gate = Promise.withResolvers<void>();
    upstream.script(async (_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "Well" }));
      await gate.promise;
      res.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
    });
    try {
      const made = await makeKey();
      const response = await chat(made.key, { stream: true });
      const reader = response.body?.getReader();
      await reader?.read();
      expect(await status(revoke(made.id))).toBe(200);
      expect(await status(chat(made.key))).toBe(401);
      gate.resolve();
      let rest = "";
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
        rest += new TextDecoder().decode(part.value);
      expect(rest).toMatch(/\[DONE\]|"error"/);
      expect(await status(chat(made.key))).toBe(401);
      const id = response.headers.get("x-request-id") ?? "";
      await until(() => {
        using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
        return db.query("SELECT 1 FROM usage_records WHERE request_id = ?").get(id);
      }, "its usage is recorded");
    } finally {
      upstream.script(chatScript());
    }
  });
});
