// Revocations at a real authorization server, and at one that never responds.
import { expect, test } from "bun:test";
import { until } from "../../../tests/support/headrace.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import type { LogFields } from "../../base/log.ts";
import type { StoredToolConnection } from "../../domain/tools/tool-connection.ts";
import { ToolAuthorization } from "./authorization.ts";
import { Revocations, type RevocationsOptions } from "./revocations.ts";
import { ToolSeals, type ToolTokens } from "./tool-tokens.ts";

const seals = new ToolSeals(new Uint8Array(32).fill(3));

/** Returns connections of `count` users at an authorization server with this revocation endpoint. */
function connections(count: number, revocationEndpoint: string, sealedWith = seals): StoredToolConnection[] {
  const issuer = { issuer: "http://127.0.0.1:1", isNamed: false, tokenEndpoint: "http://127.0.0.1:1/token" };
  return Array.from({ length: count }, (_, index) => {
    const id = `tcn_${index}`;
    const tokens: ToolTokens = {
      ...{ accessToken: `access-${index}`, refreshToken: `refresh-${index}`, client: { clientId: "ours" } },
      issuer: { ...issuer, authMethods: ["none"], revocationEndpoint },
      resource: "http://127.0.0.1:1/mcp",
    };
    return {
      ...{ id, server: "crm", accountId: "acct_1", personId: `usr_${index}`, membershipId: `mbr_${index}` },
      ...{ issuer: issuer.issuer, scopes: [], wantedScopes: [], createdAt: 1, lastUsedAt: null, brokenBecause: null },
      ...{ url: "http://127.0.0.1:1/mcp", expiresAt: null, renewedAt: 1, sealed: sealedWith.sealTokens(id, tokens) },
    };
  });
}

function noted(more: Partial<RevocationsOptions> = {}) {
  const said: [string, LogFields | undefined][] = [];
  const note = (event: string, fields?: LogFields) => void said.push([event, fields]);
  const clock = manualClock();
  const authorization = new ToolAuthorization({ rules: { allowLoopback: true }, resolve: async () => ["127.0.0.1"] });
  const log = { info: note, warn: note, error: note };
  return { said, clock, revocations: new Revocations({ authorization, seals, clock, log, ...more }) };
}

test("revokes each refresh token once, a few at a time, and logs their number", async () => {
  const tokens: (string | null)[] = [];
  let [open, most] = [0, 0];
  await using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      most = Math.max(most, ++open);
      tokens.push(new URLSearchParams(await request.text()).get("token"));
      await Bun.sleep(5);
      open--;
      return new Response();
    },
  });
  const { said, revocations } = noted();
  const ended = connections(40, `${server.url.origin}/revoke`);
  revocations.begin(ended);
  await until(() => said.length > 0, "all are revoked");
  expect(said).toEqual([["tool_tokens_revoked", { server: "crm", revoked: 40, not_revoked: 0 }]]);
  expect(tokens.sort()).toEqual(ended.map((_, index) => `refresh-${index}`).sort());
  expect(most).toBeLessThanOrEqual(8);
  expect(JSON.stringify(said)).not.toContain("refresh-");
});

test("gives up revocations at a slow server after five minutes, or when the gateway stops", async () => {
  for (const end of ["late", "closed"] as const) {
    let asked = 0;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const revoke = () => {
      asked++;
      return promise;
    };
    const { said, clock, revocations } = noted({ authorization: { revoke } });
    revocations.begin(connections(20, "http://127.0.0.1:1/revoke"));
    if (end === "late") clock.advance(300_001);
    else revocations.close();
    resolve(true);
    await until(() => said.length > 0, "it is given up");
    expect(said).toEqual([["tool_tokens_not_revoked", { server: "crm", revoked: 8, not_revoked: 12 }]]);
    expect(asked).toBe(8);
  }
});

test("revokes tokens at other servers while one authorization server never answers", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const revoke = (url: string) => (url.startsWith("http://dead") ? promise : Promise.resolve(true));
  const { said, revocations } = noted({ authorization: { revoke } });
  const live = connections(20, "http://127.0.0.1:1/revoke");
  revocations.begin(live.map((one) => ({ ...one, server: "dead", url: "http://dead.example.com/mcp" })));
  revocations.begin(live);
  await until(() => said.length > 0, "those of the other one are revoked");
  expect(said).toEqual([["tool_tokens_revoked", { server: "crm", revoked: 20, not_revoked: 0 }]]);
  resolve(true);
});

test("skips revocations beyond the queue's bound, and tokens that cannot be decrypted", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { said, revocations } = noted({ authorization: { revoke: () => promise } });
  const [one] = connections(1, "http://127.0.0.1:1/revoke");
  if (!one) throw new Error("There is one.");
  revocations.begin(Array.from({ length: 2_500 }, () => one));
  resolve(true);
  await until(() => said.length > 0, "those that had a place are revoked");
  expect(said).toEqual([["tool_tokens_not_revoked", { server: "crm", revoked: 2_000, not_revoked: 500 }]]);
  const foreign = connections(1, "http://127.0.0.1:1/revoke", new ToolSeals(new Uint8Array(32).fill(4)));
  expect(await Promise.all(foreign.map((unread) => revocations.revoke(unread)))).toEqual([false]);
});
