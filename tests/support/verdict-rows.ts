// Rows of requests, good and bad, to our authorization server and to `oidc-provider`: the same verdict, or a reason why not.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { basicHeader } from "./oauth-apps.ts";
import {
  type Asked,
  authorizeQuery,
  type ClientName,
  type Endpoint,
  type Fields,
  type Subject,
  startBoth,
  verifier,
} from "./verdicts.ts";

/** `ours` is what both say, unless a difference is explained. */
type Row = [name: string, send: (subject: Subject) => Promise<string>, ours: string];

/** By the name of the row: what `oidc-provider` says instead, and what settles it. */
type Differences = Readonly<Record<string, readonly [theirs: string, why: string]>>;

/** Starts both for the tests of a file; what it gives makes a test of each row. */
export function startComparison() {
  let both: Awaited<ReturnType<typeof startBoth>>;

  beforeAll(async () => {
    both = await startBoth();
  });

  afterAll(() => both.close());

  return function compare(rows: readonly Row[], differences: Differences = {}): void {
    for (const [name, send, ours] of rows) {
      const [theirs] = differences[name] ?? [ours];
      test(name, async () => {
        both.ours.begin();
        const verdicts = { ours: await send(both.ours), theirs: await send(both.theirs) };
        expect(verdicts).toEqual({ ours, theirs });
      });
    }
    test("requires each explained difference to exist in a known row", () => {
      const expected = new Map(rows.map(([name, , ours]) => [name, ours]));
      for (const [name, [theirs, why]] of Object.entries(differences)) {
        expect([name, expected.get(name) ?? theirs]).not.toEqual([name, theirs]);
        expect(why.length).toBeGreaterThan(20);
      }
    });
  };
}

export const noClient = "RFC 6749, 5.2: invalid_client is for a request that includes no client authentication, too.";

export const withSecret = (s: Subject, client: ClientName = "web", secret = s.clients[client].secret) =>
  basicHeader(s.clients[client].id, secret);

/** Speaks as a client: `web` by Basic, those without a secret by their name. */
export function as(
  s: Subject,
  client: ClientName,
  endpoint: Endpoint,
  fields: Fields,
  asked: Asked = {},
): Promise<string> {
  const { id, secret } = s.clients[client];
  if (secret === "") return s.ask(endpoint, { client_id: id, ...fields }, asked);
  return s.ask(endpoint, fields, { ...asked, headers: { ...basicHeader(id, secret), ...asked.headers } });
}

export const redeeming = (s: Subject, client: ClientName, code: string, changes: Fields = {}): Fields => ({
  ...{ grant_type: "authorization_code", code, redirect_uri: s.clients[client].redirectUri, code_verifier: verifier },
  ...changes,
});

export async function tokensOf(s: Subject, client: ClientName = "web"): Promise<{ access: string; refresh: string }> {
  const code = await s.codeOf(authorizeQuery(s.clients[client]));
  const body = await s.get("token", client, redeeming(s, client, code));
  return { access: String(body["access_token"]), refresh: String(body["refresh_token"]) };
}

export const refreshing = (token: string | undefined, more: Fields = {}): Fields => ({
  grant_type: "refresh_token",
  refresh_token: token,
  ...more,
});
