// Rows of the database: what is in its columns, JSON above all, is read by other replicas, later versions and earlier ones.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Account, Tier } from "../../src/domain/account.ts";
import type { AuditEvent } from "../../src/domain/audit.ts";
import type { Batch, BatchLine, LineUsage } from "../../src/domain/batches/batch.ts";
import type { MadeBy, StoredFile, Upload, UploadPart } from "../../src/domain/files/stored-file.ts";
import type { QuotaRule } from "../../src/domain/limits/quota-rules.ts";
import { byCapability } from "../../src/domain/models/capabilities.ts";
import type { StoredModel } from "../../src/domain/models/model-entry.ts";
import type { AnnouncedModel, NodeJoinToken, NodeRecord } from "../../src/domain/models/node.ts";
import type { ModelPolicies } from "../../src/domain/models/policies/model-policies.ts";
import type { Price, PriceVariant, RateName } from "../../src/domain/models/price.ts";
import { rates } from "../../src/domain/models/price.ts";
import type { NewChat } from "../../src/domain/models/stored-chat.ts";
import type { Conversation, StoredResponse } from "../../src/domain/models/stored-response.ts";
import type { StoredUpstream } from "../../src/domain/models/upstream.ts";
import type { Notification } from "../../src/domain/notifications/notification.ts";
import type { DeliveryTry, SecuredWebhook } from "../../src/domain/notifications/webhook.ts";
import type { App } from "../../src/domain/people/app.ts";
import type { AuthorizationCode, DeviceCode } from "../../src/domain/people/oauth.ts";
import type { OutsideClient } from "../../src/domain/people/outside-client.ts";
import type { Membership, OneTimeLink, Passkey, Person } from "../../src/domain/people/person.ts";
import type { Session } from "../../src/domain/people/session.ts";
import type { ApiKeyRecord } from "../../src/domain/principal.ts";
import type { SealFor } from "../../src/domain/seal.ts";
import type { StoredMcpServer } from "../../src/domain/tools/mcp-server-store.ts";
import type { RegisteredToolClient, StoredToolConnection } from "../../src/domain/tools/tool-connection.ts";
import type { ToolContent } from "../../src/domain/tools/tool-content.ts";
import type { ToolDefinition } from "../../src/domain/tools/tool-definition.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { SqlBatchStore } from "../../src/storage/tables/batches/batch-store.ts";
import { SqlBatchWork } from "../../src/storage/tables/batches/batch-work.ts";
import { SqlChatStore } from "../../src/storage/tables/chats/chat-store.ts";
import { SqlFileStore } from "../../src/storage/tables/files/file-store.ts";
import { SqlUploadStore } from "../../src/storage/tables/files/upload-store.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";
import { SqlModelStore } from "../../src/storage/tables/model-store.ts";
import { SqlNodeStore } from "../../src/storage/tables/node-store.ts";
import { SqlDeliveryStore } from "../../src/storage/tables/notifications/delivery-store.ts";
import { SqlNotificationStore } from "../../src/storage/tables/notifications/notification-store.ts";
import { SqlWebhookStore } from "../../src/storage/tables/notifications/webhook-store.ts";
import { SqlAppStore } from "../../src/storage/tables/people/app-store.ts";
import { SqlOAuthStore } from "../../src/storage/tables/people/oauth-store.ts";
import { SqlOutsideClientStore } from "../../src/storage/tables/people/outside-client-store.ts";
import { SqlPersonStore } from "../../src/storage/tables/people/person-store.ts";
import { SqlSessionStore } from "../../src/storage/tables/people/session-store.ts";
import { SqlBackgroundStore } from "../../src/storage/tables/responses/background-store.ts";
import { SqlConversationStore } from "../../src/storage/tables/responses/conversation-store.ts";
import { SqlResponseStore } from "../../src/storage/tables/responses/response-store.ts";
import { SqlDefinitionStore } from "../../src/storage/tables/tools/definition-store.ts";
import { SqlMcpServerStore } from "../../src/storage/tables/tools/mcp-server-store.ts";
import { SqlToolConnectionStore } from "../../src/storage/tables/tools/tool-connection-store.ts";
import { SqlToolContents } from "../../src/storage/tables/tools/tool-content-store.ts";
import { SqlUpstreamStore } from "../../src/storage/tables/upstream-store.ts";
import { expectCommitted } from "./committed.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-golden-"));
let db: Database;
beforeAll(async () => {
  db = await openDatabase(join(directory, "headrace.db"));
});
afterAll(async () => {
  await db.close();
  rmSync(directory, { recursive: true });
});

const at = 1_790_000_000;
const later = 4_000_000_000;
let events = 0;
const event = (more: Partial<AuditEvent> = {}): AuditEvent => ({
  ...{ id: `audit_${String(++events).padStart(3, "0")}`, at, action: "key.created", actor: { type: "operator" } },
  ...{ accountId: "acct_1", targetId: "x", clientAddress: "192.0.2.1", requestId: "req_1", detail: {} },
  ...more,
});
/** Shows the place and the text in place of sealing. */
const sealFor: SealFor = (place) => ({
  seal: (text) => `[${place}] ${text}`,
  open: (text) => (text.startsWith(`[${place}] `) ? text.slice(place.length + 3) : undefined),
});

/** All rows of some tables, as the database has them. */
async function rowsOf(...tables: string[]): Promise<Record<string, string>> {
  const records: Record<string, string> = {};
  for (const table of tables) {
    const rows: object[] = await db.unsafe(`SELECT * FROM ${table}`);
    const texts = rows.map((row) => JSON.stringify(row)).sort();
    for (const [i, row] of texts.entries()) records[`${table} ${i + 1}`] = row;
  }
  return records;
}

const quota: Required<QuotaRule> = {
  ...{ unit: "usd", amount: 1.5, per: "5h", window: "rolling", models: ["a", "b*"], tag: "t", hardStop: true },
};
const tier: Tier = {
  ...{ name: "gold", requestsPerMinute: 1, tokensPerMinute: 2, monthlyTokens: 3, monthlySpend: 4.5 },
  ...{ environments: ["live", "test"], quotas: [quota], priority: "high" },
};
const { amount: _, hardStop: __, ...raised } = quota;
const account: Account = {
  ...{ id: "acct_1", name: "Acme", tier: "gold", status: "active", storeChats: true, tools: ["files/read*"] },
  ...{ overrides: { monthlyTokens: 5, monthlySpend: null, quotas: [quota] }, createdAt: at },
  raises: [
    { requestId: "lrq_1", ownerId: "mbr_1_live", environment: "live", quota: raised, amount: 0.5, until: later },
  ],
};
const key: ApiKeyRecord = {
  ...{ id: "key_1", kind: "key", personId: null, appId: null, role: null, seesAllUsage: false, accountId: "acct_1" },
  ...{ name: "Key", environment: "live", digest: "d1", prefix: "sk_live_hr_", last4: "abcd" },
  ...{ scopes: ["chat:write", "models:read"], createdBy: "usr_1", parentId: null, limitId: "key_1", createdAt: at },
  ...{ expiresAt: later, revokedAt: null, revoked: false, lastUsedAt: null, allowedIps: ["192.0.2.0/24", "::1"] },
  ...{ rateLimit: 6, rateLimitWindow: 60, quotas: [quota], models: ["m"], tools: ["files"], neverLeaves: true },
  ...{ priority: "low", responseCache: "off", tags: ["team:blue"], note: "n", monthlyTokens: 7, monthlySpend: 8.5 },
  suspendedBy: null,
};
const person: Person = {
  ...{
    id: "usr_1",
    email: "ada@example.test",
    name: "Ada",
    isEmailProven: true,
    isOperator: true,
    suspendedAt: null,
    createdAt: at,
  },
};
const membership: Required<Membership> = {
  ...{ id: "mbr_1", accountId: "acct_1", personId: "usr_1", role: "owner", quotas: [quota], tools: ["files"] },
  ...{ seesAllUsage: true, createdAt: at },
};

describe.serial("stored accounts, keys and people", () => {
  const link: OneTimeLink = {
    ...{ id: "lnk_1", purpose: "invitation", digest: "d2", delivery: "mail", email: "bob@example.test" },
    ...{ personId: null, accountId: "acct_1", role: "admin", createdAt: at, expiresAt: later, usedAt: null },
    createdBy: "usr_1",
  };
  const passkey: Passkey = {
    ...{ id: "pk_1", personId: "usr_1", name: "Laptop", publicKey: "cose", counter: 1, transports: ["usb", "nfc"] },
    ...{ backedUp: true, createdAt: at, lastUsedAt: null },
  };
  const session: Session = {
    ...{ id: "ses_1", personId: "usr_1", accountId: "acct_1", method: "passkey", userAgent: "UA", createdAt: at },
    ...{ clientAddress: "192.0.2.1", lastSeenAt: at, rotatedAt: at, expiresAt: later },
  };
  const app: App = {
    ...{ id: "app_1", accountId: "acct_1", personId: "usr_1", name: "App", homepageUrl: "https://app.example" },
    ...{ type: "confidential", redirectUris: ["https://app.example/cb"], scopes: ["tools:use"], tools: ["files"] },
    ...{ environment: "live", requirePkce: true, suspendedBy: null, createdBy: "usr_1", createdAt: at },
    secrets: [{ id: "sec_1", digest: "d3", last4: "wxyz", createdAt: at, expiresAt: later }],
  };
  const outside: OutsideClient = {
    ...{ id: "app_2", documentUrl: "https://client.example/doc", name: "Client", homepageUrl: null, allowedAt: at },
    ...{ redirectUris: ["http://127.0.0.1/cb"], suspendedBy: "operator", createdAt: at },
  };
  const code: AuthorizationCode = {
    ...{ digest: "d4", appId: "app_1", personId: "usr_1", accountId: "acct_1", membershipId: "mbr_1" },
    ...{
      environment: "live",
      scopes: ["tools:use"],
      tools: ["files"],
      quotas: [quota],
      resources: ["/mcp"],
      redirectUri: "r",
    },
    ...{ codeChallenge: "c", createdAt: at, expiresAt: later, grantId: null },
  };
  const device: DeviceCode = {
    ...{ digest: "d5", userCode: "ABCDEFGH", appId: "app_1", environment: "live", scopes: ["tools:use"] },
    ...{
      tools: ["files"],
      quotas: [quota],
      resources: ["/mcp"],
      createdAt: at,
      expiresAt: later,
      intervalSeconds: 5,
      polledAt: null,
    },
    ...{ state: "pending", personId: null, accountId: null, membershipId: null, grantId: null },
  };

  test("writes accounts, keys and people as committed and reads them back", async () => {
    const [accounts, keys, people] = [new SqlAccountStore(db), new SqlKeyStore(db), new SqlPersonStore(db)];
    const [sessions, apps, oauth] = [new SqlSessionStore(db), new SqlAppStore(db), new SqlOAuthStore(db)];
    const clients = new SqlOutsideClientStore(db);
    await accounts.putTier(tier, event());
    await accounts.insertAccount(account, event());
    await keys.insertKey(key, event({ detail: { name: "Key", scopes: ["chat:write"] } }));
    await people.apply({ addPerson: { ...person, passwordHash: "hash" } }, event());
    await people.apply({ addIdentity: { issuer: "i", subject: "s", personId: "usr_1", createdAt: at } }, event());
    await people.apply({ addMembership: membership }, event());
    await people.setQuotas("mbr_1", membership.quotas, event());
    await people.setTools("mbr_1", membership.tools, event());
    await people.insertLink(link, event());
    expect(await people.insertPasskey(passkey, event())).toBe(true);
    expect(await sessions.insert(session, "d6", event())).toBe(true);
    await apps.insertApp(app, event());
    await clients.allowed(outside);
    const by = { actor: { type: "person", id: "usr_1" }, at, accountId: "acct_1" } as const;
    expect(await oauth.insertCode(code, by)).toBe(true);
    expect(await oauth.insertDeviceCode(device)).toBe(true);
    expectCommitted("database-people", {
      ...(await rowsOf("tiers", "accounts", "api_keys", "people", "identities", "memberships", "one_time_links")),
      ...(await rowsOf("passkeys", "sessions", "apps", "app_secrets", "outside_clients")),
      ...(await rowsOf("authorization_codes", "device_codes")),
    });
    expect(await accounts.listTiers()).toContainEqual(tier);
    expect(await accounts.findAccount("acct_1")).toEqual(account);
    expect((await keys.findChainById("key_1"))?.keys).toEqual([key]);
    expect(await people.findByEmail(person.email)).toEqual({ ...person, passwordHash: "hash" });
    expect(await people.findMembership("mbr_1")).toEqual(membership);
    expect(await people.findLink("d2")).toEqual(link);
    expect(await people.findPasskey("pk_1")).toEqual(passkey);
    expect((await sessions.findByDigest("d6"))?.session).toEqual(session);
    expect(await apps.findApp("app_1")).toEqual({ ...app, publisher: "Acme" });
    expect(await oauth.findCode("d4")).toEqual(code);
    expect(await oauth.findByUserCode("ABCDEFGH", at)).toEqual(device);
  });

  test("writes audit events of accounts, keys and people as committed", async () => {
    const log = new SqlAuditLog(db);
    const entry = event({
      id: "audit_999",
      actor: { type: "key", id: "key_1" },
      detail: { a: [1, null], b: { c: "ä" } },
    });
    await log.append([entry]);
    const rows = await rowsOf("audit_log");
    expectCommitted("database-audit", { entry: Object.values(rows).find((row) => row.includes("audit_999")) ?? "" });
    expect(await log.list({}, { after: undefined, limit: 1 })).toEqual([entry]);
  });
});

const everyRate = Object.fromEntries(rates.map(({ name }, i) => [name, i + 0.5])) as Record<RateName, number>;
const variant: Required<PriceVariant> = {
  ...everyRate,
  ...{ contextAbove: 1_000, served: "flex", from: at, hours: [{ start: 60, end: 120 }], days: [0, 6], factor: 0.5 },
};
const price: Required<Price> = { ...everyRate, variants: [variant] };
const policies: Required<ModelPolicies> = {
  continuation: true,
  overflow: {
    to: [{ upstream: "north", cost: price, costOf: "openai/gpt-5" }],
    ...{ afterSeconds: 2.5, promptTokensAbove: 10, hours: [{ start: 1, end: 2 }], mostNanoUsdPerRequest: 3 },
    spend: { nanoUsd: 4, per: "week" },
  },
  cache: {
    ...{ requests: "all", ttlSeconds: 60, priceFactor: 0.5 },
    semantic: { embeddingModel: "e", threshold: 0.9 },
  },
  guardrails: ["secrets"],
  shadow: { model: "s", percent: 5 },
  split: [{ model: "t", percent: 10 }],
};

describe.serial("stored routing", () => {
  const model: StoredModel = {
    ...{ id: "m", ownedBy: "acme", capabilities: byCapability(() => true), context: 8_192, environments: ["live"] },
    ...{ price, priceOf: "openai/gpt-5", deployments: [{ upstream: "north", model: "m-1", weight: 2 }] },
    ...{ fallbacks: ["f"], aliases: ["a*"], policies, createdAt: at },
  };
  const upstream: StoredUpstream = {
    ...{ name: "north", url: "https://north.example/v1", sealedApiKey: "v1.x", discover: true, local: true },
    ...{ environments: ["live"], timeoutSeconds: 1, idleSeconds: 2, maxConcurrency: 3, api: "openai" },
    ...{ apis: ["chat", "responses"], keyHeader: "api-key", query: { "api-version": "1" }, cacheSalt: true },
    ...{ priority: true, identifiers: "removed", createdAt: at },
  };
  const announced: Required<Omit<AnnouncedModel, "environments">> = {
    ...{ id: "m", ownedBy: "acme", created: at, context: 1, capabilities: { chat: true }, concurrency: { chat: 1 } },
    ...{ process: "loaded", continues: "flag", shutdownAt: at },
  };
  const node: NodeRecord = {
    ...{ id: "node_1", name: "rack", publicKey: "pk", approvedModels: ["*"], environments: ["live"] },
    ...{ maxConcurrency: 4, local: true, announced: [announced], version: "1.2.3", createdAt: at, lastSeenAt: at },
    toolServers: [{ name: "files", title: "Files", kind: "http" }],
  };
  const token: NodeJoinToken = {
    ...{ id: "njt_1", digest: "d7", last4: "abcd", approvedModels: ["*"], environments: ["live"], createdBy: "usr_1" },
    ...{ createdAt: at, expiresAt: later, usedAt: null, nodeId: null },
  };

  test("writes models, upstreams and nodes as committed and reads them back", async () => {
    const [models, upstreams] = [new SqlModelStore(db), new SqlUpstreamStore(db)];
    const nodes = new SqlNodeStore(db, { announce() {} });
    expect(await models.insertModel(model, event())).toBe(true);
    expect(await upstreams.insertUpstream(upstream, event())).toBe(true);
    await nodes.insertToken(token, event());
    expect(await nodes.enrol(node, { digests: ["d7"], at, isFree: true }, () => event())).toBe("enrolled");
    const { announced: models_, toolServers } = node;
    await nodes.seen("node_1", { announced: models_, toolServers, version: "1.2.3", at });
    const tables = ["models", "upstreams", "node_join_tokens", "nodes"];
    expectCommitted("database-routing", await rowsOf(...tables));
    expect(await models.listModels()).toEqual([model]);
    expect(await upstreams.listUpstreams()).toEqual([upstream]);
    expect(await nodes.listNodes()).toEqual([node]);
  });
});

describe.serial("stored MCP servers", () => {
  const server: Required<StoredMcpServer> = {
    ...{ name: "files", title: "Files", description: "Reads.", place: { kind: "http", url: "https://t.example/mcp" } },
    ...{ credentialKind: "person", sealedCredentials: "v1.x", local: true, environments: ["live"] },
    ...{ accounts: ["acct_1"], tools: ["read*"], approval: "each", sharing: "person", timeoutMs: 1 },
    ...{
      maxResultBytes: 2,
      maxConcurrency: 3,
      nanoUsdPerCall: 4,
      protocolVersion: "2025-11-25",
      enabled: true,
      isShared: true,
      createdAt: at,
    },
  };
  const atNode: Required<StoredMcpServer> = {
    ...{ ...server, name: "remote", place: { kind: "node", nodeId: "node_1", server: "files" } },
    ...{ credentialKind: "none", sealedCredentials: null },
  };
  const definition: ToolDefinition = {
    ...{ server: "files", kind: "tool", name: "read", state: "changed", approvedDigest: "d8", approved: "{}" },
    ...{ seen: '{"name":"read"}', approvedOthers: ["d9"], refused: ["d10", "d11"], seenAt: at, decidedAt: at },
    decidedBy: "usr_1",
  };
  const connection: StoredToolConnection = {
    ...{ id: "tcn_1", server: "files", accountId: "acct_1", personId: "usr_1", membershipId: "mbr_1", issuer: "i" },
    ...{ scopes: ["a", "b"], wantedScopes: ["c"], createdAt: at, lastUsedAt: at, brokenBecause: null, url: "u" },
    ...{ sealed: "v1.x", expiresAt: later, renewedAt: at },
  };
  const client: RegisteredToolClient = { server: "files", issuer: "i", sealed: "v1.y", createdAt: at };
  const content: ToolContent = {
    ...{ requestId: "req_1", accountId: "acct_1", environment: "live", appId: null, personId: null },
    ...{ expiresAt: later, arguments: '{"path":"/a"}', result: '{"content":[]}' },
  };

  test("writes MCP servers, definitions, connections and calls as committed and reads them back", async () => {
    const [servers, definitions] = [new SqlMcpServerStore(db), new SqlDefinitionStore(db)];
    const [connections, contents] = [new SqlToolConnectionStore(db), new SqlToolContents(db, sealFor)];
    expect(await servers.insertMcpServer(server, event())).toBe(true);
    expect(await servers.insertMcpServer(atNode, event())).toBe(true);
    await definitions.putSeen([definition]);
    expect(await connections.put(connection, event())).toBe(true);
    await connections.putClient(client);
    await contents.insert([content]);
    const tables = ["tool_servers", "tool_definitions", "tool_connections", "tool_clients", "tool_contents"];
    expectCommitted("database-mcp", await rowsOf(...tables));
    expect(await servers.listMcpServers()).toEqual([server, atNode]);
    expect(await definitions.listDefinitions("files")).toEqual([definition]);
    expect(await connections.find("files", connection)).toEqual(connection);
    expect(await connections.findClient("files", "i")).toEqual(client);
    const { arguments: asked, result } = content;
    expect(await contents.find(content, "req_1", at)).toEqual({ arguments: asked, result });
  });
});

describe.serial("stored notifications", () => {
  const webhook: SecuredWebhook = {
    ...{ id: "whk_1", accountId: "acct_1", environment: "live", url: "https://hook.example", description: "Hook" },
    format: "slack",
    ...{ events: ["quota.threshold", "key.unused"], isEnabled: true, disabledReason: null, createdBy: "usr_1" },
    ...{ createdAt: at, secrets: [{ sealed: "v1.x", last4: "abcd", expiresAt: later }] },
  };
  const about = { id: "evt", at, accountId: "acct_1", environment: "live" } as const;
  const account_ = { owner: "key", owner_id: "key_1", environment: "live", unit: "USD", limit: 1.5, used: 1 } as const;
  const notices: Notification[] = [
    {
      ...{ ...about, id: "evt_01", type: "quota.threshold", once: "1" },
      data: {
        ...{
          ...account_,
          threshold: 80,
          window: { starts_at: at, ends_at: later },
          per: "5h",
          models: ["m"],
          tag: "t",
        },
      },
    },
    {
      ...{ ...about, id: "evt_02", type: "key.unused", once: "2" },
      data: { key_id: "k", name: "n", environment: "live", created_at: at, last_used_at: null, days: 90 },
    },
    {
      ...{ ...about, id: "evt_03", type: "key.expiring", once: "3" },
      data: { key_id: "k", name: "n", environment: "live", expires_at: later, days: 7 },
    },
    {
      ...{ ...about, id: "evt_04", type: "errors.rate", once: "4" },
      data: { environment: "live", requests: 10, failed: 5, rate: 50, window_seconds: 300 },
    },
    { ...about, id: "evt_05", type: "upstream.down", once: "5", data: { upstream: "north", since: at } },
    { ...about, id: "evt_06", type: "upstream.up", once: "6", data: { upstream: "north", down_seconds: 1 } },
    { ...about, id: "evt_07", type: "node.away", once: "7", data: { node_id: "n", name: "rack", since: at } },
    { ...about, id: "evt_08", type: "node.back", once: "8", data: { node_id: "n", name: "rack", away_seconds: 1 } },
    { ...about, id: "evt_09", type: "tool.changed", once: "9", data: { server: "files", waiting: 1 } },
    { ...about, id: "evt_10", type: "webhook.test", once: "10", data: { webhook_id: "whk_1" } },
  ];
  const lastTry: DeliveryTry = { at, status: 500, error: "status", durationMs: 12 };

  test("writes notifications, webhooks and deliveries as committed and reads them back", async () => {
    const [webhooks, store, deliveries] = [
      new SqlWebhookStore(db),
      new SqlNotificationStore(db),
      new SqlDeliveryStore(db),
    ];
    expect(await webhooks.insert(webhook, event())).toBe(true);
    for (const notice of notices) await store.add(notice, { mails: false });
    const bounds = { limit: 1, perTarget: 1, perOwner: 1, underWay: [], leaseSeconds: 60 };
    const [claimed] = await deliveries.claim(at, bounds);
    if (claimed) await deliveries.tried(claimed, { state: "pending", lastTry, dueAt: later });
    const rows = await rowsOf("webhooks", "notices", "notice_deliveries");
    const blanked = Object.entries(rows).map(([name, row]) => [name, row.replace(/dlv_[\w-]+/, "dlv_<random>")]);
    expectCommitted("database-notices", Object.fromEntries(blanked));
    expect(await webhooks.find("whk_1")).toEqual(webhook);
    for (const notice of notices) expect(await store.find(notice.id)).toEqual(notice);
    const listed = await deliveries.list("whk_1", { after: undefined, limit: 10 });
    expect(listed.map(({ tries }) => tries)).toContainEqual([lastTry]);
  });
});

const owner: MadeBy = {
  ...{ accountId: "acct_1", environment: "live", keyId: "key_1", appId: "app_1", personId: "usr_1", madeBy: "key_0" },
};

describe.serial("stored client data", () => {
  const file: StoredFile = {
    ...{ ...owner, id: "file-1", purpose: "batch", filename: "a.jsonl", bytes: 5, createdAt: at, expiresAt: later },
  };
  const upload: Upload = {
    ...{ ...owner, id: "upload_1", filename: "b", purpose: "user_data", bytes: 6, mimeType: "text/plain" },
    ...{ status: "pending", createdAt: at, expiresAt: later, keepSeconds: 7, fileId: null },
  };
  const part: UploadPart = { id: "part_1", uploadId: "upload_1", bytes: 3, createdAt: at };
  const chat: NewChat = {
    ...{ ...owner, id: "chatcmpl-1", model: "m", createdAt: at, expiresAt: later, metadata: { a: "b" } },
    ...{ parameters: { temperature: 0 }, completion: { id: "chatcmpl-1", choices: [] }, messages: [{ role: "user" }] },
  };
  const conversation: Conversation = { ...owner, id: "conv_1", createdAt: at, expiresAt: later, metadata: { a: "b" } };
  const item = { id: "msg_1", type: "message" };
  const response: StoredResponse = {
    ...{ ...owner, id: "resp_1", model: "m", createdAt: at, expiresAt: later, status: "completed", previousId: null },
    ...{ conversationId: "conv_1", background: false, response: { id: "resp_1", output: [{ id: "msg_2" }] } },
    input: [{ id: "msg_0", type: "message" }],
  };
  const running: StoredResponse = {
    ...{ ...response, id: "resp_2", status: "queued", conversationId: null, background: true },
    response: { id: "resp_2", output: [] },
  };

  const { messages, madeBy: _, ...stored } = { ...chat, ...owner };

  test("writes files, chats, conversations and responses as committed and reads them back", async () => {
    const [files, uploads, chats] = [new SqlFileStore(db), new SqlUploadStore(db), new SqlChatStore(db)];
    const [responses, conversations] = [new SqlResponseStore(db, sealFor), new SqlConversationStore(db, sealFor)];
    const background = new SqlBackgroundStore(db, sealFor);
    expect(await files.begin(file, 1e9)).toBe(true);
    expect(await files.finish(file, 1e9)).toBe(true);
    expect(await uploads.create(upload, 1e9)).toBe(true);
    expect(await uploads.addPart(part, at)).toBe(true);
    await chats.insert([chat]);
    await conversations.create(conversation, [item]);
    await responses.insert([response, running]);
    const batch = { first: 0, events: ['{"type":"response.queued","sequence_number":0}'] };
    await background.progress("resp_2", { status: "in_progress", response: running.response, events: batch }, at);
    const tables = ["stored_files", "uploads", "upload_parts", "stored_chats", "stored_chat_tags", "conversations"];
    expectCommitted("database-stored", {
      ...(await rowsOf(...tables)),
      ...(await rowsOf("conversation_items", "stored_responses", "stored_response_items", "response_events")),
    });
    expect(await files.find(owner, "file-1", at)).toEqual(file);
    expect(await chats.find(owner, "chatcmpl-1", at)).toEqual(stored);
    expect(await chats.findMessages(owner, "chatcmpl-1", at)).toEqual(messages);
    expect(await conversations.find(owner, "conv_1", at)).toEqual(conversation);
    expect(await responses.find(owner, "resp_1", at)).toEqual(response);
    expect(await background.events("resp_2", -1, 1e6)).toEqual([batch]);
  });

  test("writes batches and their lines as committed and reads them back", async () => {
    const [batches, work] = [new SqlBatchStore(db), new SqlBatchWork(db, sealFor)];
    const batch: Batch = {
      ...{ ...owner, id: "batch_1", form: "openai", endpoint: "/v1/chat/completions", inputFileId: "file-1" },
      ...{ status: "validating", ending: null, createdAt: at, expiresAt: later, inProgressAt: null },
      ...{ finalizingAt: null, cancellingAt: null, endedAt: null, models: [], total: 0, completed: 0, failed: 0 },
      ...{ promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0, outputFileId: null },
      ...{ errorFileId: null, keepSeconds: 8, faults: [], metadata: { a: "b" } },
    };
    const line: BatchLine = { batchId: "batch_1", line: 1, customId: "c1", model: "m", start: 0, end: 10 };
    const { madeBy: _, personId: __, ...maker } = owner;
    const usage: LineUsage = {
      begin: {
        ...{ ...maker, requestId: "req_1", at, operation: "chat", model: "m", stream: false, tags: ["t"] },
      },
      end: {
        ...{ promptTokens: 1, completionTokens: 2, estimated: true, outcome: "completed", errorCode: null, nanoUsd: 3 },
        ...{ capped: true, upstream: "north", durationMs: 4, firstTokenMs: 5, queueMs: 6 },
        ...{ understated: true, overstated: true, pastLimit: true },
        parts: { cachedTokens: 1, cacheWriteTokens: 2, reasoningTokens: 3, details: { searches: 1 } },
        trail: [
          {
            ...{ upstream: "north", upstreamModel: "m-1", model: "m", result: "refused", status: 503, reason: "busy" },
            ...{ startedMs: 1, durationMs: 2, leftOut: 3 },
          },
        ],
      },
    };
    const claim = { id: "claim_1", leaseSeconds: 60 };
    const fault = { code: "invalid_json_line", message: "No JSON.", line: 2, param: "body" };
    expect(await batches.create(batch, 9)).toBe(true);
    expect(await batches.create({ ...batch, id: "batch_2" }, 9)).toBe(true);
    for (let n = 0; n < 2; n++) await work.claimBatch(claim);
    expect(await work.fail("batch_2", claim, [fault], at)).toBe(true);
    expect(await work.beginLines("batch_1", claim)).toBe(true);
    expect(await work.addLines("batch_1", [line], claim)).toBe(true);
    expect(await work.begin({ id: "batch_1", models: ["m"], total: 1 }, claim, at)).toBe(true);
    const [claimed] = await work.claimLines("batch_1", ["m"], 1, claim);
    expect(claimed).toEqual({ ...line, attempts: 0 });
    if (claimed) expect(await work.answered(claimed, { text: "{}", isError: false, usage }, claim)).toBe(true);
    const rows = await rowsOf("batches", "batch_lines");
    const blanked = Object.entries(rows).map(([name, row]) => [
      name,
      row.replace(/"(due_at|claimed_until|done_at)":[1-9]\d*/g, '"$1":<now>'),
    ]);
    expectCommitted("database-batches", Object.fromEntries(blanked));
    expect((await batches.find(owner, "batch_2"))?.faults).toEqual([fault]);
    expect((await batches.find(owner, "batch_1"))?.models).toEqual(["m"]);
    expect(await work.unpaid(1, "batch_1")).toEqual([{ batchId: "batch_1", line: 1, usage }]);
    expect(await work.lines("batch_1", 0, 1)).toEqual([
      { line: 1, customId: "c1", answer: { text: "{}", isError: false } },
    ]);
  });
});
