// Tokens of people as they are renewed: by a real authorization server that takes each refresh token once, on both databases.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { GatewayError } from "../../src/base/errors.ts";
import type { Log } from "../../src/base/log.ts";
import type { Membership, Person } from "../../src/domain/people/person.ts";
import { issuerOf, ToolAuthorization } from "../../src/mcp/connections/authorization.ts";
import { lifeOf, PersonConnections } from "../../src/mcp/connections/person-connections.ts";
import { personalServer } from "../../src/mcp/connections/personal-server.ts";
import { ToolSeals } from "../../src/mcp/connections/tool-tokens.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { SqlPersonStore } from "../../src/storage/tables/people/person-store.ts";
import { SqlToolConnectionStore } from "../../src/storage/tables/tools/tool-connection-store.ts";
import { onEachDatabase, type TestDatabase } from "../support/databases.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import {
  changingMcpServers,
  type OAuthMcpServer,
  personalMcpServer,
  startOAuthMcpServer,
} from "../support/oauth-mcp-server.ts";

const key = new Uint8Array(32).fill(3);
const log: Log = { info() {}, warn() {}, error() {} };
const of = { accountId: "", personId: "usr_1" };

let opened: TestDatabase;
let upstream: OAuthMcpServer;
let clock: ManualClock;
let connections: PersonConnections;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    upstream = startOAuthMcpServer();
    clock = manualClock();
    connections = connectionsOn(opened.db);
    of.accountId = await new SqlAccountStore(opened.db).ensureFirstAccount(clock.nowSeconds());
    await addMember(opened.db);
  });

  afterEach(async () => {
    await upstream.close();
    await opened.close();
  });

  test("renews a tool connection's token before it expires, and not sooner", async () => {
    const first = await connect();
    expect(await token()).toBe(first);
    clock.advance(3_500_000);
    expect(await token()).toBe(first);
    clock.advance(50_000);
    const second = await token();
    expect(second).not.toBe(first);
    expect(await upstream.whoIs(second)).toBe("anna");
    expect(await token()).toBe(second);
    expect(upstream.state.counts.renewed).toBe(1);
  });

  test("renews a tool connection once among processes, without reusing a refresh token", async () => {
    // SQLite's one connection is what its processes share; each has its own claims all the same.
    const again = async () => (databases.dialect === "sqlite" ? opened.db : opened.openAgain());
    const all = [connections, connectionsOn(await again()), connectionsOn(await again())];
    const first = await connect();
    for (let round = 1; round <= 3; round++) {
      clock.advance(3_600_000);
      const wanted = all.flatMap((one) => Array.from({ length: 5 }, () => one.accessToken("crm", of)));
      const given = new Set(await Promise.all(wanted));
      expect(given.size).toBe(1);
      expect([...given][0]).not.toBe(first);
      expect(await upstream.whoIs([...given][0])).toBe("anna");
      expect(upstream.state.counts).toMatchObject({ renewed: round, reused: 0 });
    }
  });

  test("waits no longer than half a minute for a process that died while renewing", async () => {
    await connect();
    const store = new SqlToolConnectionStore(opened.db);
    const found = await store.find("crm", of);
    if (!found) throw new Error("not there");
    const nowSeconds = clock.nowSeconds() + 3_600;
    expect(await store.claim(found, { name: "dead", nowSeconds, untilSeconds: nowSeconds + 30 })).toBe(true);
    clock.advance(3_600_000);
    // Each wait is one of 200 ms.
    const late = connectionsOn(opened.db, async (ms) => clock.advance(ms * 2));
    expect(await upstream.whoIs(await late.accessToken("crm", of))).toBe("anna");
    expect(await store.settle(found.id, "dead", { brokenBecause: "late" })).toBe(false);
  });

  test("marks a connection revoked at the server as broken, gives the reason, audits it, and asks no more", async () => {
    await connect();
    upstream.revokeAll();
    clock.advance(3_600_000);
    expect(await token()).toBeUndefined();
    const store = new SqlToolConnectionStore(opened.db);
    expect((await store.find("crm", of))?.brokenBecause).toContain("taken back there");
    const events = await new SqlAuditLog(opened.db).list(
      { action: "tool_connection.broken" },
      { after: undefined, limit: 9 },
    );
    expect(events).toMatchObject([{ detail: { server: "crm", person_id: "usr_1", because: "refused" } }]);
    expect(await token()).toBeUndefined();
    expect(upstream.state.counts.renewed).toBe(0);
  });

  test("uses a valid token while the authorization server is down, and returns 503 for an expired one", async () => {
    const first = await connect();
    upstream.state.failure = 500;
    clock.advance(3_550_000);
    expect(await token()).toBe(first);
    clock.advance(60_000);
    await expect(token()).rejects.toMatchObject({ code: "service_unavailable" });
    upstream.state.failure = undefined;
    clock.advance(10_000);
    expect(await upstream.whoIs(await token())).toBe("anna");
  });

  test.each([429, 500, 503])("does not ask an authorization server that answers %d on every call", async (failure) => {
    const first = await connect();
    upstream.state.failure = failure;
    clock.advance(3_550_000);
    for (let call = 0; call < 100; call++) expect(await token()).toBe(first);
    expect(upstream.state.counts.failed).toBe(1);
    // 5, 10, 20, 40 and 60 s of rest.
    for (let second = 0; second < 120; second++) {
      clock.advance(1_000);
      await Promise.allSettled([token(), token()]);
    }
    expect(upstream.state.counts.failed).toBe(5);
    const refused = await token().catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "service_unavailable", retryAfterSeconds: expect.any(Number) });
    upstream.state.failure = undefined;
    clock.advance(60_000);
    expect(await upstream.whoIs(await token())).toBe("anna");
  });

  test("renews a token that the server refused once for all callers", async () => {
    const first = (await connect()) ?? "";
    clock.advance(60_000);
    await Promise.all([connections.refused("crm", of, first), connections.refused("crm", of, first)]);
    const second = (await token()) ?? "";
    expect(second).not.toBe(first);
    await connections.refused("crm", of, first);
    expect(await token()).toBe(second);
    expect(upstream.state.counts.renewed).toBe(1);
    await connections.refused("crm", of, second);
    expect(await token()).toBeUndefined();
  });

  test("uses a token that cannot be renewed until it expires, and then says so", async () => {
    const first = await connect({ renews: false });
    clock.advance(3_550_000);
    expect(await token()).toBe(first);
    clock.advance(60_000);
    expect(await token()).toBeUndefined();
    const found = await new SqlToolConnectionStore(opened.db).find("crm", of);
    expect(found?.brokenBecause).toContain("nothing to renew it by");
  });

  test("records the scopes a server demands once per token, and clears them with a new connection", async () => {
    const first = await connect();
    const wanted = async () => (await new SqlToolConnectionStore(opened.db).find("crm", of))?.wantedScopes;
    await connections.insufficient("crm", of, "another token", "write");
    expect(await wanted()).toEqual([]);
    await connections.insufficient("crm", of, first ?? "", "read write");
    await connections.insufficient("crm", of, first ?? "", "write admin\u0007");
    await connections.insufficient("crm", of, first ?? "", "delete");
    expect(await wanted()).toEqual(["write", "delete"]);
    expect(await token()).toBe(first);
    await connect();
    expect(await wanted()).toEqual([]);
  });

  test("revokes a renewed token whose connection ended during the renewal", async () => {
    await connect();
    clock.advance(3_600_000);
    let given = "";
    /** The membership ends while the authorization server is asked. */
    class Ending extends ToolAuthorization {
      override async renew(...asked: Parameters<ToolAuthorization["renew"]>) {
        const renewed = await super.renew(...asked);
        if (renewed !== "refused") given = renewed.access_token;
        await new SqlPersonStore(opened.db).removeMembership("mbr_1", eventOf());
        return renewed;
      }
    }
    const late = connectionsOn(opened.db, Bun.sleep, authorization(Ending));
    expect(await late.accessToken("crm", of)).toBeUndefined();
    expect(given).not.toBe("");
    expect(await upstream.whoIs(given)).toBeUndefined();
  });

  test.each(["before", "after"])(
    "stores renewed tokens once a database is back that failed %s the write, without reusing a refresh token",
    async (when) => {
      await connect();
      clock.advance(3_600_000);
      let isAway = true;
      class Failing extends SqlToolConnectionStore {
        override async settle(...settled: Parameters<SqlToolConnectionStore["settle"]>) {
          if (!isAway) return super.settle(...settled);
          if (when === "after") await super.settle(...settled);
          throw new GatewayError("service_unavailable", "The database cannot be used at the moment.");
        }
      }
      const late = connectionsOn(opened.db, async () => {}, authorization(), new Failing(opened.db));
      await expect(late.accessToken("crm", of)).rejects.toMatchObject({ code: "service_unavailable" });
      isAway = false;
      // The claim of the renewal is over.
      clock.advance(60_000);
      const second = await late.accessToken("crm", of);
      expect(await upstream.whoIs(second)).toBe("anna");
      expect(upstream.state.counts).toMatchObject({ renewed: 1, reused: 0 });
      const found = await new SqlToolConnectionStore(opened.db).find("crm", of);
      expect(found?.brokenBecause).toBeNull();
      clock.advance(3_600_000);
      expect(await upstream.whoIs(await late.accessToken("crm", of))).toBe("anna");
      expect(upstream.state.counts).toMatchObject({ renewed: 2, reused: 0 });
    },
  );

  test("does not store a connection of a membership that has ended", async () => {
    await new SqlPersonStore(opened.db).removeMembership("mbr_1", eventOf());
    await expect(connect()).rejects.toThrow();
    expect(await new SqlToolConnectionStore(opened.db).list({}, { after: undefined, limit: 9 })).toEqual([]);
  });
});

const token = () => connections.accessToken("crm", of);

function connectionsOn(
  db: Database,
  sleep: (ms: number) => Promise<unknown> = () => Bun.sleep(5),
  asked = authorization(),
  store = new SqlToolConnectionStore(db),
): PersonConnections {
  return new PersonConnections({
    servers: changingMcpServers([personalMcpServer("crm", upstream.url)]),
    store,
    authorization: asked,
    seals: new ToolSeals(key),
    audit: new SqlAuditLog(db),
    ...{ clock, log, sleep },
  });
}

const authorization = (Kind = ToolAuthorization) =>
  new Kind({ rules: { allowLoopback: true }, resolve: async () => ["127.0.0.1"] });

const eventOf = () =>
  auditEvent(
    "tool_connection.created",
    { type: "operator" },
    { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null },
    { accountId: of.accountId, targetId: "tcn_1", detail: {} },
  );

async function addMember(db: Database): Promise<void> {
  const createdAt = clock.nowSeconds();
  const person: Person = {
    ...{
      id: of.personId,
      email: "anna@example.test",
      name: "Anna",
      isEmailProven: true,
      isOperator: false,
      suspendedAt: null,
      createdAt,
    },
  };
  const membership: Membership = {
    ...{ id: "mbr_1", accountId: of.accountId, personId: person.id, role: "member", seesAllUsage: false, createdAt },
  };
  await new SqlPersonStore(db).apply(
    { addPerson: { ...person, passwordHash: null }, addMembership: membership },
    eventOf(),
  );
}

/** What the flow in the browser does, without a browser; gives the token. */
async function connect({ renews = true } = {}): Promise<string | undefined> {
  upstream.state.renews = renews;
  const server = personalServer(personalMcpServer("crm", upstream.url));
  if (!server) throw new Error("not personal");
  const asked = authorization();
  const found = await asked.find(server);
  const client = { clientId: "ours" };
  const redirectUri = "http://127.0.0.1:1/back";
  const { url, verifier } = await asked.begin(found, { client, redirectUri, state: "s" });
  const back = new URL(upstream.allow(url, "anna")).searchParams;
  const { resource, metadata } = found;
  const code = back.get("code") ?? "";
  const iss = back.get("iss") ?? undefined;
  const given = await asked.redeem(server, metadata, { client, code, iss, verifier, redirectUri, resource });
  const { access_token: accessToken, refresh_token: refreshToken } = given;
  const put = await new SqlToolConnectionStore(opened.db).put(
    {
      ...{ id: "tcn_1", server: "crm", ...of, membershipId: "mbr_1", issuer: metadata.issuer, scopes: ["read"] },
      wantedScopes: [],
      ...{ createdAt: clock.nowSeconds(), lastUsedAt: null, brokenBecause: null, url: upstream.url },
      sealed: new ToolSeals(key).sealTokens("tcn_1", {
        ...{ accessToken, refreshToken, client, resource, issuer: issuerOf(metadata, false) },
      }),
      ...lifeOf(given, clock.nowSeconds()),
    },
    eventOf(),
  );
  if (!put) throw new Error("not written");
  return accessToken;
}
