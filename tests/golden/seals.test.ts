// Sealed values, the keys that are derived for each purpose, and digests: an installation's own records must go on opening.
import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { hkdfSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linkUrl, setupToken } from "../../src/accounts/link-token.ts";
import { Pending } from "../../src/accounts/pending.ts";
import type { PublishedApp } from "../../src/domain/people/app.ts";
import type { PendingEntry, PendingStore } from "../../src/domain/people/pending.ts";
import { mcpServerContext } from "../../src/domain/tools/server-rules.ts";
import { formTicket, type TicketSubject } from "../../src/http/pages/form-ticket.ts";
import { upstreamKeyContext } from "../../src/inference/models/manage-upstreams.ts";
import { checkOf } from "../../src/maintenance/installation-secret.ts";
import { type KeptClient, ToolSeals, type ToolTokens } from "../../src/mcp/connections/tool-tokens.ts";
import { webhookSecretPurpose } from "../../src/notifications/delivery/deliverer.ts";
import { openAnswer, sealAnswer } from "../../src/oauth/token/sealed-answer.ts";
import type { ClientRequest, TokenAnswer } from "../../src/oauth/token/stage.ts";
import { openContentKey, openPseudonymKey } from "../../src/policy/credentials/content-key.ts";
import { keyDigest } from "../../src/policy/credentials/key-digest.ts";
import { tokenDigest } from "../../src/policy/credentials/opaque-token.ts";
import { seal, unseal } from "../../src/policy/credentials/sealing.ts";
import { replySeals } from "../../src/server/reply-seals.ts";
import { deriveKey, deriveKeys } from "../../src/storage/files/secret-file.ts";
import { startHeadrace } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { committed, expectCommitted } from "./committed.ts";

const secret = Buffer.alloc(32, 42);
const purposes = [
  ...(["api-key-pepper-v1", "signing-key-seal-v1", "tool-connection-seal-v1", "tool-server-seal-v1"] as const),
  ...(["upstream-seal-v1", "csrf-v1", "oauth-seal-v1", "pending-seal-v1", "secret-check-v1"] as const),
  ...(["setup-link-v1", "node-token-v1", "replica-forward-v1", "reply-seal-v1", "answer-seal-v1"] as const),
  ...(["answer-digest-v1", "content-key-seal-v1"] as const),
];
type Purpose = (typeof purposes)[number];
const keyOf = (purpose: Purpose) => deriveKey(secret, purpose);
/** The derivation as it is committed, whatever production does now. */
const committedKey = (purpose: string) =>
  new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), `headrace ${purpose}`, 32));

test("derives the committed key for each purpose", () => {
  const keys = purposes.map((purpose) => [purpose, Buffer.from(keyOf(purpose)).toString("hex")]);
  expectCommitted("purposes", Object.fromEntries(keys));
});

test("names only the committed purposes in the source", async () => {
  const found = new Set<string>();
  for await (const path of new Bun.Glob("**/*.ts").scan(join(import.meta.dir, "../../src"))) {
    if (path.endsWith(".test.ts")) continue;
    const source = readFileSync(join(import.meta.dir, "../../src", path), "utf8");
    for (const [, name = ""] of source.matchAll(/["'`](?:headrace )?([a-z][a-z-]*-v[0-9]+)["'`]/g)) found.add(name);
  }
  const formats = ["anthropic-claude-v1", "openai-responses-v1"];
  expect([...found].sort()).toEqual([...Object.keys(committed("purposes")), "pseudonyms-v1", ...formats].sort());
});

const tokens: Required<ToolTokens> = {
  ...{ accessToken: "at", refreshToken: "rt", client: { clientId: "c", clientSecret: "s" } },
  issuer: {
    ...{ issuer: "https://as.example", isNamed: true, tokenEndpoint: "https://as.example/token" },
    ...{ authMethods: ["client_secret_basic"], revocationEndpoint: "https://as.example/revoke" },
  },
  resource: "https://tools.example/mcp",
};
const toolClient: Required<KeptClient> = {
  ...{ clientId: "c", clientSecret: "s", redirectUri: "https://gateway.example/cb", endsAt: 1_790_000_000 },
};
const toolPlace = { server: "files", issuer: "https://as.example" };
const answer: TokenAnswer = {
  ...{ access_token: "at", token_type: "Bearer", expires_in: 3_600, refresh_token: "rt", scope: "chat:write" },
};
const refresh: ClientRequest = {
  ...{ parameters: new Map([["scope", "chat:write"]]), resources: ["https://gateway.example/mcp"] },
  ...{ client: { id: "app_1" } as PublishedApp, origin: {} as ClientRequest["origin"] },
};
const toolSeals = new ToolSeals(deriveKeys([secret], "tool-connection-seal-v1"));
const pseudonymKey = Buffer.alloc(32, 9);
const replies = replySeals(keyOf("reply-seal-v1"), pseudonymKey)("acct_1");
const oauthKeys = { sealingKey: keyOf("oauth-seal-v1") };

/** What production seals with each purpose, and the text that is in it. */
const sealed: Record<string, { purpose?: Purpose; text: string; make(): string; open(text: string): unknown }> = {
  "key of an upstream": sealedFor(
    "upstream-seal-v1",
    upstreamKeyContext({ name: "north", url: "https://north.example/v1" }),
  ),
  "credentials of a tool server": sealedFor(
    "tool-server-seal-v1",
    mcpServerContext({ name: "files", url: "https://tools.example/mcp" }),
  ),
  "signing key": sealedFor("signing-key-seal-v1", "sig_1"),
  "content key": sealedFor("content-key-seal-v1", "content_key", Buffer.alloc(32, 3).toString("base64url")),
  "tokens of a tool connection": {
    ...{ purpose: "tool-connection-seal-v1", text: JSON.stringify(tokens) },
    ...{ make: () => toolSeals.sealTokens("tcn_1", tokens), open: (text) => toolSeals.openTokens("tcn_1", text) },
  },
  "client at an authorization server": {
    ...{ purpose: "tool-connection-seal-v1", text: JSON.stringify(toolClient) },
    make: () => toolSeals.sealClient(toolPlace, toolClient),
    open: (text) => toolSeals.openClient(toolPlace, text),
  },
  "reasoning given to a client": {
    ...{ purpose: "reply-seal-v1", text: "text", make: () => replies.seal("text"), open: (text) => replies.open(text) },
  },
  "answer to a refresh": {
    text: JSON.stringify(answer),
    make: () => sealAnswer(answer, "hrr_token", refresh, oauthKeys),
    open: (text) => openAnswer(text, "hrr_token", refresh, oauthKeys),
  },
};

function sealedFor(purpose: Purpose, context: string, text = "text") {
  return {
    ...{ purpose, text },
    make: () => seal(text, keyOf(purpose), context),
    open: (value: string) => unseal(value, keyOf(purpose), context),
  };
}

test("opens each committed sealed value only with its own purpose", async () => {
  const found = committed("sealed");
  const values = Object.entries(sealed).map(([name, { make, open }]) => [name, found[name] ?? make(), open] as const);
  expectCommitted("sealed", Object.fromEntries(values));
  for (const [name, value, open] of values) {
    const { text, purpose } = sealed[name] ?? { text: "" };
    const opened = open(String(value));
    expect([name, typeof opened === "string" ? opened : JSON.stringify(opened)]).toEqual([name, text]);
    if (purpose === undefined) continue;
    const contexts = ["upstream north https://north.example", "sig_1"];
    contexts.push("tool server files https://tools.example", "content_key", "tcn_1", "files https://as.example");
    contexts.push("reply acct_1");
    const opening = purposes.filter((other) => contexts.some((context) => opens(String(value), other, context)));
    expect([name, opening]).toEqual([name, [purpose]]);
  }
});

function opens(value: string, purpose: string, context: string): boolean {
  try {
    unseal(value, committedKey(purpose), context);
    return true;
  } catch {
    return false;
  }
}

test("opens content under the committed content key and makes the committed pseudonyms", async () => {
  const contentKeys = {
    find: async () => String(committed("sealed")["content key"]),
    add: async (text: string) => text,
  };
  const sealFor = await openContentKey(contentKeys, keyOf("content-key-seal-v1"));
  const place = sealFor(webhookSecretPurpose("whk_1"));
  const found = committed("content");
  const value = String(found["webhook secret"] ?? place.seal("whsec_1"));
  const pseudonyms = replySeals(
    keyOf("reply-seal-v1"),
    await openPseudonymKey(contentKeys, keyOf("content-key-seal-v1")),
  );
  expectCommitted("content", { "webhook secret": value, pseudonym: pseudonyms("acct_1").pseudonym("user", "ada") });
  expect(place.open(value)).toBe("whsec_1");
  expect(sealFor("elsewhere").open(value)).toBeUndefined();
});

test("writes and accepts a pending entry as committed", async () => {
  const entries: PendingEntry[] = [];
  const store: PendingStore = {
    async put(entry) {
      entries.push(entry);
    },
    take: async (kind, digest) => entries.find((one) => one.kind === kind && one.digest === digest)?.value,
    has: async () => true,
    async trim() {},
    async prune() {},
  };
  const kind = { name: "single_sign_on", lifeSeconds: 600, most: 1_000 };
  const pending = new Pending<string>({ store, sealingKey: keyOf("pending-seal-v1"), clock: manualClock() }, kind);
  await pending.put("abcdefgh.key", "value");
  const { value = "", ...rest } = entries[0] ?? {};
  const found = String(committed("pending")["value"] ?? value);
  expectCommitted("pending", { entry: JSON.stringify(rest), value: found, network: pending.newKey("net").slice(0, 9) });
  entries[0] = { ...(entries[0] as PendingEntry), value: found };
  expect(await pending.take("abcdefgh.key")).toBe("value");
});

test("makes the committed digests, tickets and link tokens", () => {
  const subject = { purpose: "consent", signedIn: { session: { id: "ses_1" } }, about: ["app_1"] };
  expectCommitted("digests", {
    "api key": keyDigest("sk_live_hr_x", keyOf("api-key-pepper-v1")),
    "opaque token": tokenDigest("token"),
    "secret check": checkOf(secret),
    "form ticket": formTicket(keyOf("csrf-v1"), subject as unknown as TicketSubject),
    "set-up token": setupToken("lnk_1", keyOf("setup-link-v1")),
    links: JSON.stringify(
      (["setup", "invitation", "password_reset"] as const).map((p) => linkUrl("https://g", p, "t")),
    ),
  });
});

test("seals and digests each record in a running server under the committed purpose and context", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-golden-"));
  const env = { HEADRACE_SECRET: secret.toString("hex") };
  try {
    await using server = await startHeadrace({ env, dataDir: directory });
    const operator = await makeOperatorKey(directory, [], env);
    const post = async (path: string, body: unknown) => {
      const answer = await server.request(path, { body, headers: { authorization: `Bearer ${operator}` } });
      expect([path, answer.ok]).toEqual([path, true]);
      return (await answer.json()) as Record<string, string>;
    };
    await post("/v1/admin/upstreams", { name: "north", url: "http://127.0.0.1:9", api_key: "sk-up" });
    const headers = { authorization: "Bearer tool" };
    await post("/v1/admin/tool-servers", { name: "files", url: "http://127.0.0.1:9/mcp", headers });
    const { token = "" } = await post("/v1/admin/node-tokens", { approved_models: ["*"] });
    const records = new Sqlite(join(directory, "headrace.db"), { readonly: true });
    const only = (query: string) => records.query<Record<string, string>, []>(query).get() ?? {};
    const opened = (value: string | undefined, purpose: Purpose, context: string) =>
      unseal(value ?? "", committedKey(purpose), context);
    const digest = (text: string, purpose: Purpose) =>
      new Bun.CryptoHasher("sha256", committedKey(purpose)).update(text).digest("hex");
    const [signing, content] = [only("SELECT * FROM signing_keys"), only(installationRow("content_key"))];
    expect(opened(signing["sealed_private_jwk"], "signing-key-seal-v1", signing["id"] ?? "")).toContain('"kty":"EC"');
    expect(opened(content["value"], "content-key-seal-v1", "content_key")).toMatch(/^[\w-]{43}$/);
    const upstream = only("SELECT * FROM upstreams")["sealed_api_key"];
    expect(opened(upstream, "upstream-seal-v1", "upstream north http://127.0.0.1:9")).toBe("sk-up");
    const tools = only("SELECT * FROM tool_servers")["sealed_credentials"];
    const credentials = opened(tools, "tool-server-seal-v1", "tool server files http://127.0.0.1:9");
    expect(credentials).toBe('{"kind":"headers","headers":{"authorization":"Bearer tool"}}');
    expect(only("SELECT * FROM node_join_tokens")["digest"]).toBe(digest(token, "node-token-v1"));
    expect(only("SELECT * FROM api_keys WHERE kind = 'key' ORDER BY created_at")["digest"]).toBe(
      digest(server.key, "api-key-pepper-v1"),
    );
    expect(only(installationRow("secret_check"))["value"]).toBe(checkOf(secret));
    records.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}, 60_000);

function installationRow(name: string): string {
  return `SELECT * FROM installation WHERE name = '${name}'`;
}
