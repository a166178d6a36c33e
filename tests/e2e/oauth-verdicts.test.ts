// The same requests, good and bad, to our authorization server and to `oidc-provider`: the same verdict, or a reason why not.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { basicHeader } from "../support/oauth-apps.ts";
import {
  type Asked,
  authorizeQuery,
  type ClientName,
  type Endpoint,
  type Fields,
  form,
  type Subject,
  startBoth,
  verifier,
} from "../support/verdicts.ts";

/** `ours` is what both say, unless a difference is explained. */
type Row = [name: string, send: (subject: Subject) => Promise<string>, ours: string];

/** By the name of the row: what `oidc-provider` says instead, and what settles it. */
type Differences = Readonly<Record<string, readonly [theirs: string, why: string]>>;

let both: Awaited<ReturnType<typeof startBoth>>;

beforeAll(async () => {
  both = await startBoth();
});

afterAll(() => both.close());

function compare(rows: readonly Row[], differences: Differences = {}): void {
  for (const [name, send, ours] of rows) {
    const [theirs] = differences[name] ?? [ours];
    test(name, async () => {
      both.ours.begin();
      const verdicts = { ours: await send(both.ours), theirs: await send(both.theirs) };
      expect(verdicts).toEqual({ ours, theirs });
    });
  }
  test("what is explained is a difference, of a row that there is", () => {
    const expected = new Map(rows.map(([name, , ours]) => [name, ours]));
    for (const [name, [theirs, why]] of Object.entries(differences)) {
      expect([name, expected.get(name) ?? theirs]).not.toEqual([name, theirs]);
      expect(why.length).toBeGreaterThan(20);
    }
  });
}

const noClient = "RFC 6749, 5.2: invalid_client is for a request that includes no client authentication, too.";
const badHeader =
  "RFC 6749, 5.2: invalid_client with a 401 where the client tried the Authorization header and it failed, or has a method that is not supported.";
const byGet = "RFC 9110, 15.5.6: the resource is there, and takes POST (RFC 6749, 3.2).";
const others =
  "RFC 7662, 4: a client is not told of tokens that are none of its business; they leave that policy to be set.";
const expired =
  "RFC 8628, 3.5: expired_token. Theirs is as well, where the store still knows the code; the one they bring forgets it on time.";

const asks =
  (changes: Fields = {}, client: ClientName = "web", more = "") =>
  (subject: Subject) =>
    subject.authorize(authorizeQuery(subject.clients[client], changes) + more);

describe("authorize", () => {
  compare(
    [
      ["a good request of an app with a secret", asks(), "redirect code"],
      ["of one without", asks({}, "spa"), "redirect code"],
      ["of a program on this computer", asks({}, "native"), "redirect code"],
      ["an address with a query of its own", asks({}, "other"), "redirect code"],
      ["no state", asks({ state: undefined }), "redirect code"],
      ["a parameter that nobody knows, twice", asks({}, "web", "&x=1&x=2"), "redirect code"],
      [
        "without PKCE, by an app with a secret",
        asks({ code_challenge: undefined, code_challenge_method: undefined }),
        "redirect code",
      ],
      [
        "denied by the person",
        (s) => s.authorize(authorizeQuery(s.clients.web, { prompt: "consent" }), { decision: "deny" }),
        "redirect access_denied",
      ],
      ["nobody signed in", (s) => s.authorize(authorizeQuery(s.clients.web), { signedIn: false }), "sign-in"],
      ["redirect_uri left out, one registered", asks({ redirect_uri: undefined }), "redirect code"],
      [
        "a port of a loopback address",
        asks({ redirect_uri: "http://127.0.0.1:49152/callback" }, "native"),
        "redirect code",
      ],
      ["an app's own scheme", asks({ redirect_uri: "com.example.app:/callback" }, "native"), "redirect code"],
      [
        "prompt=none, allowed before",
        async (s) => {
          await tokensOf(s);
          return s.authorize(authorizeQuery(s.clients.web, { prompt: "none" }));
        },
        "redirect code",
      ],
      ["response_mode=query", asks({ response_mode: "query" }), "redirect code"],

      ["client_id left out", asks({ client_id: undefined }), "page"],
      ["an unknown client", asks({ client_id: "app_nobody" }), "page"],
      ["client_id twice", asks({}, "web", "&client_id=app_nobody"), "page"],
      ["redirect_uri left out, two registered", asks({ redirect_uri: undefined }, "many"), "page"],
      ["redirect_uri twice", asks({}, "web", "&redirect_uri=https%3A%2F%2Fevil.example%2F"), "page"],
      ["another host", asks({ redirect_uri: "https://evil.example/callback" }), "page"],
      ["a slash more", asks({ redirect_uri: "https://app.example/callback/" }), "page"],
      ["a query more", asks({ redirect_uri: "https://app.example/callback?x=1" }), "page"],
      ["another case of the path", asks({ redirect_uri: "https://app.example/Callback" }), "page"],
      ["another case of the host", asks({ redirect_uri: "https://APP.example/callback" }), "page"],
      ["a path of dots", asks({ redirect_uri: "https://app.example/x/../callback" }), "page"],
      ["a user name", asks({ redirect_uri: "https://app.example@evil.example/callback" }), "page"],
      ["a fragment", asks({ redirect_uri: "https://app.example/callback#" }), "page"],
      [
        "a port of an address that is not loopback",
        asks({ redirect_uri: "https://app.example:8443/callback" }),
        "page",
      ],
      ["another path on loopback", asks({ redirect_uri: "http://127.0.0.1:49152/elsewhere" }, "native"), "page"],
      ["another name of loopback", asks({ redirect_uri: "http://localhost:49152/callback" }, "native"), "page"],
      ["the address of another app", asks({ redirect_uri: "https://other.example/callback?tenant=1" }), "page"],
      ["both wrong, address and scope", asks({ redirect_uri: "https://evil.example/", scope: "nonsense" }), "page"],

      ["response_type left out", asks({ response_type: undefined }), "redirect invalid_request"],
      ["response_type=token", asks({ response_type: "token" }), "redirect unsupported_response_type"],
      ["response_type=code twice", asks({}, "web", "&response_type=code"), "redirect invalid_request"],
      ["response_type=code id_token", asks({ response_type: "code id_token" }), "redirect unsupported_response_type"],
      ["response_type=code code", asks({ response_type: "code code" }), "redirect unsupported_response_type"],
      ["scope twice", asks({}, "web", "&scope=chat%3Awrite"), "redirect invalid_request"],
      ["state twice", asks({}, "web", "&state=2"), "redirect invalid_request without state"],
      ["a scope the app was not registered with", asks({ scope: "chat:write usage:read" }), "redirect invalid_scope"],
      ["a scope no app may have", asks({ scope: "keys:manage" }), "redirect invalid_scope"],
      ["a scope nobody knows", asks({ scope: "chat:write nonsense" }), "redirect invalid_scope"],
      ["a scope with characters it may not have", asks({ scope: 'chat:write "' }), "redirect invalid_scope"],
      ["no scope", asks({ scope: undefined }), "redirect code"],
      [
        "without PKCE, by an app without a secret",
        asks({ code_challenge: undefined, code_challenge_method: undefined }, "spa"),
        "redirect invalid_request",
      ],
      ["PKCE by plain", asks({ code_challenge_method: "plain" }), "redirect invalid_request"],
      [
        "a challenge without its method, which means plain",
        asks({ code_challenge_method: undefined }),
        "redirect invalid_request",
      ],
      ["a method without its challenge", asks({ code_challenge: undefined }), "redirect invalid_request"],
      ["a challenge that is too short", asks({ code_challenge: "abc" }), "redirect invalid_request"],
      ["a challenge of 44 characters", asks({ code_challenge: "a".repeat(44) }), "redirect invalid_request"],
      ["code_challenge twice", asks({}, "web", "&code_challenge=x"), "redirect invalid_request"],
      ["prompt=none login", asks({ prompt: "none login" }), "redirect invalid_request"],
      ["prompt=none, a program on this computer", asks({ prompt: "none" }, "native"), "redirect consent_required"],
      ["prompt=nonsense", asks({ prompt: "nonsense" }), "redirect code"],
      ["response_mode=nonsense", asks({ response_mode: "nonsense" }), "redirect invalid_request"],
      ["response_mode=fragment", asks({ response_mode: "fragment" }), "redirect invalid_request"],
      ["a request object", asks({ request: "e30.e30." }), "redirect request_not_supported"],
      [
        "a request by reference",
        asks({ request_uri: "https://app.example/request" }),
        "redirect request_uri_not_supported",
      ],
      [
        "a bad scope, nobody signed in",
        (s) => s.authorize(authorizeQuery(s.clients.web, { scope: "nonsense" }), { signedIn: false }),
        "sign-in",
      ],
      ["a state of 3,000 characters", asks({ state: "s".repeat(3_000) }), "redirect invalid_request"],
    ],
    {
      "redirect_uri twice": [
        "redirect invalid_request",
        "RFC 6749, 4.1.2.1: no redirect where the address is missing, invalid or in doubt; they take the registered one.",
      ],
      "response_type=token": [
        "redirect unsupported_response_type in the fragment",
        "RFC 6749, 3.1.1: a response type that is not understood is answered as 4.1.2.1 says, in the query; the fragment is for servers that have that grant.",
      ],
      "response_type=code id_token": [
        "redirect invalid_request in the fragment",
        "RFC 6749, 3.1.1 and 4.1.2.1: unsupported_response_type, in the query; they have OpenID Connect, and miss its nonce.",
      ],
      "response_type=code code": [
        "redirect code",
        "RFC 6749, 3.1.1: a response type is a registered name, and `code code` is none; they drop what is doubled.",
      ],
      "a scope nobody knows": [
        "redirect code",
        "RFC 6749, 4.1.2.1: a scope that is unknown is invalid_scope; 3.3 lets them leave it out.",
      ],
      "no scope": [
        "redirect access_denied",
        "RFC 6749, 3.3: either a default, or invalid_scope; ours are the scopes of the app.",
      ],
      "a challenge of 44 characters": [
        "redirect code",
        "RFC 7636, 4.2: S256 gives 43 characters, so no verifier would ever fit; they look at the alphabet and the bounds of a verifier.",
      ],
      "prompt=none, a program on this computer": [
        "redirect interaction_required",
        "OpenID Connect Core, 3.1.2.6: it is consent that is missing, and both codes are for this.",
      ],
      "prompt=nonsense": [
        "redirect invalid_request",
        "OpenID Connect Core (errata 2), 3.1.2.1: what is not understood may be ignored, so that new values can come; we ask the person.",
      ],
      "response_mode=nonsense": [
        "redirect unsupported_response_mode",
        "RFC 6749, 4.1.2.1 has no such code; an unsupported parameter value is invalid_request.",
      ],
      "response_mode=fragment": [
        "redirect code in the fragment",
        "Our metadata offers `query` alone (RFC 8414, 2); a code is for the app's server, which sees no fragment.",
      ],
      "a state of 3,000 characters": [
        "redirect code",
        "Our own bound: RFC 9110, 4.1, promises 8,000 octets for a whole address, the app's own included.",
      ],
    },
  );
});

const withSecret = (s: Subject, client: ClientName = "web", secret = s.clients[client].secret) =>
  basicHeader(s.clients[client].id, secret);

/** As a client: `web` by Basic, those without a secret by their name. */
function as(s: Subject, client: ClientName, endpoint: Endpoint, fields: Fields, asked: Asked = {}): Promise<string> {
  const { id, secret } = s.clients[client];
  if (secret === "") return s.ask(endpoint, { client_id: id, ...fields }, asked);
  return s.ask(endpoint, fields, { ...asked, headers: { ...basicHeader(id, secret), ...asked.headers } });
}

const redeeming = (s: Subject, client: ClientName, code: string, changes: Fields = {}): Fields => ({
  ...{ grant_type: "authorization_code", code, redirect_uri: s.clients[client].redirectUri, code_verifier: verifier },
  ...changes,
});

/** A fresh code, redeemed with changes, by the app it was issued to or another. */
const redeems =
  (changes: Fields = {}, client: ClientName = "web", { by = client, asked = {} as Fields, after = 0 } = {}) =>
  async (s: Subject) => {
    const code = await s.codeOf(authorizeQuery(s.clients[client], asked));
    if (after > 0) await s.later(after);
    return as(s, by, "token", redeeming(s, client, code, changes));
  };

/** Client authentication, at a request that is good otherwise. */
const proves = (how: (s: Subject) => { fields?: Fields; headers?: Record<string, string> }) => async (s: Subject) => {
  const { fields = {}, headers = {} } = how(s);
  const code = await s.codeOf(authorizeQuery(s.clients.web));
  return s.ask("token", { ...redeeming(s, "web", code), ...fields }, { headers });
};

const sends =
  (body: (code: string) => string, headers: Record<string, string> = {}) =>
  async (s: Subject) => {
    const code = await s.codeOf(authorizeQuery(s.clients.web));
    const asForm = form(redeeming(s, "web", code));
    return s.ask("token", {}, { headers: { ...withSecret(s), ...headers }, body: body(asForm) });
  };

const noPkce: Fields = { code_challenge: undefined, code_challenge_method: undefined };

describe("token, by a code", () => {
  compare(
    [
      ["a good one", redeems(), "200"],
      ["an app without a secret", redeems({}, "spa"), "200"],
      ["an address with a query", redeems({}, "other"), "200"],
      ["without PKCE", redeems({ code_verifier: undefined }, "web", { asked: noPkce }), "200"],
      [
        "redirect_uri in neither request",
        redeems({ redirect_uri: undefined }, "web", { asked: { redirect_uri: undefined } }),
        "200",
      ],
      ["redirect_uri in the second request alone", redeems({}, "web", { asked: { redirect_uri: undefined } }), "200"],
      ["parameters that nobody knows", redeems({ resource: undefined, x: "1" }), "200"],
      ["59 s old", redeems({}, "web", { after: 59 }), "200"],

      ["61 s old", redeems({}, "web", { after: 61 }), "400 invalid_grant"],
      ["unknown", (s) => as(s, "web", "token", redeeming(s, "web", "nonsense")), "400 invalid_grant"],
      ["left out", redeems({ code: undefined }), "400 invalid_request"],
      ["empty", redeems({ code: "" }), "400 invalid_request"],
      ["of another app", redeems({}, "web", { by: "other" }), "400 invalid_grant"],
      [
        "redirect_uri of the first request left out",
        redeems({ redirect_uri: undefined }, "many"),
        "400 invalid_request",
      ],
      ["redirect_uri left out, where one is registered", redeems({ redirect_uri: undefined }), "400 invalid_request"],
      [
        "another redirect_uri that is registered",
        redeems({ redirect_uri: "https://many.example/b" }, "many"),
        "400 invalid_grant",
      ],
      ["another redirect_uri", redeems({ redirect_uri: "https://evil.example/" }), "400 invalid_grant"],
      ["the verifier left out", redeems({ code_verifier: undefined }), "400 invalid_grant"],
      ["another verifier", redeems({ code_verifier: "x".repeat(43) }), "400 invalid_grant"],
      ["a verifier of 42 characters", redeems({ code_verifier: "x".repeat(42) }), "400 invalid_grant"],
      ["a verifier of 129 characters", redeems({ code_verifier: "x".repeat(129) }), "400 invalid_grant"],
      ["a verifier with a blank", redeems({ code_verifier: `${"x".repeat(43)} y` }), "400 invalid_grant"],
      ["a verifier for a code without a challenge", redeems({}, "web", { asked: noPkce }), "400 invalid_grant"],
      [
        "used before",
        async (s) => {
          const code = await s.codeOf(authorizeQuery(s.clients.web));
          await as(s, "web", "token", redeeming(s, "web", code));
          return as(s, "web", "token", redeeming(s, "web", code));
        },
        "400 invalid_grant",
      ],
      [
        "used twice: its tokens",
        async (s) => {
          const code = await s.codeOf(authorizeQuery(s.clients.web));
          const { access_token } = await s.get("token", "web", redeeming(s, "web", code));
          await as(s, "web", "token", redeeming(s, "web", code));
          return as(s, "web", "introspect", { token: String(access_token) });
        },
        "200 inactive",
      ],
    ],
    {
      "redirect_uri left out, where one is registered": [
        "200",
        "RFC 6749, 4.1.3: required where the authorization request had it; OAuth 2.1 alone drops it.",
      ],
      "a verifier of 42 characters": [
        "400 invalid_request",
        "RFC 7636, 4.6: a verifier that does not fit is invalid_grant; they look at its form first.",
      ],
      "a verifier of 129 characters": ["400 invalid_request", "RFC 7636, 4.6: as the one that is too short."],
      "a verifier with a blank": ["400 invalid_request", "RFC 7636, 4.6: as the one that is too short."],
    },
  );
});

describe("token, by any grant type", () => {
  compare(
    [
      ["grant_type left out", redeems({ grant_type: undefined }), "400 invalid_request"],
      ["grant_type=password", redeems({ grant_type: "password" }), "400 unsupported_grant_type"],
      ["grant_type=client_credentials", redeems({ grant_type: "client_credentials" }), "400 unsupported_grant_type"],
      ["grant_type in capitals", redeems({ grant_type: "AUTHORIZATION_CODE" }), "400 unsupported_grant_type"],
      ["grant_type=__proto__", redeems({ grant_type: "__proto__" }), "400 unsupported_grant_type"],
      ["grant_type twice", sends((body) => `${body}&grant_type=refresh_token`), "400 invalid_request"],
      ["code twice", sends((body) => `${body}&code=x`), "400 invalid_request"],
      ["an unknown parameter twice", sends((body) => `${body}&x=1&x=2`), "200"],
      [
        "as JSON",
        sends((body) => JSON.stringify(Object.fromEntries(new URLSearchParams(body))), {
          "content-type": "application/json",
        }),
        "400 invalid_request",
      ],
      [
        "as a form with a charset",
        sends((body) => body, { "content-type": "application/x-www-form-urlencoded; charset=utf-8" }),
        "200",
      ],
      ["as plain text", sends((body) => body, { "content-type": "text/plain" }), "400 invalid_request"],
      ["nothing at all", (s) => s.ask("token", {}), "401 invalid_client"],
      ["100 kB", sends((body) => `${body}&x=${"x".repeat(100_000)}`), "413 invalid_request"],
      ["by GET", (s) => s.ask("token", {}, { method: "GET", headers: withSecret(s) }), "405"],
    ],
    {
      "nothing at all": ["400 invalid_request", noClient],
      "100 kB": [
        "400 invalid_request",
        "RFC 9110, 15.5.14: 413 says what to do about it; the code of RFC 6749, 5.2, is the same.",
      ],
      "by GET": ["404", byGet],
    },
  );
});

describe("the client", () => {
  const id = (s: Subject) => s.clients.web.id;
  const secret = (s: Subject) => s.clients.web.secret ?? "";
  const raw = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
  compare(
    [
      ["by Basic", proves((s) => ({ headers: withSecret(s) })), "200"],
      [
        "by Basic in small letters",
        proves((s) => ({ headers: { authorization: withSecret(s).authorization.replace("Basic", "basic") } })),
        "200",
      ],
      [
        "by Basic, with its id in the body as well",
        proves((s) => ({ headers: withSecret(s), fields: { client_id: id(s) } })),
        "200",
      ],
      ["in the body", proves((s) => ({ fields: { client_id: id(s), client_secret: secret(s) } })), "200"],
      [
        "by both ways",
        proves((s) => ({ headers: withSecret(s), fields: { client_id: id(s), client_secret: secret(s) } })),
        "400 invalid_request",
      ],
      [
        "by Basic, another id in the body",
        proves((s) => ({ headers: withSecret(s), fields: { client_id: s.clients.other.id } })),
        "400 invalid_request",
      ],
      ["a wrong secret by Basic", proves((s) => ({ headers: withSecret(s, "web", "wrong") })), "401 invalid_client"],
      [
        "a wrong secret in the body",
        proves((s) => ({ fields: { client_id: id(s), client_secret: "wrong" } })),
        "401 invalid_client",
      ],
      ["an empty secret by Basic", proves((s) => ({ headers: withSecret(s, "web", "") })), "401 invalid_client"],
      [
        "an empty secret in the body",
        proves((s) => ({ fields: { client_id: id(s), client_secret: "" } })),
        "401 invalid_client",
      ],
      ["no secret", proves((s) => ({ fields: { client_id: id(s) } })), "401 invalid_client"],
      ["an unknown id", proves((s) => ({ headers: raw(`app_nobody:${secret(s)}`) })), "401 invalid_client"],
      ["an unknown id without a secret", proves(() => ({ fields: { client_id: "app_nobody" } })), "401 invalid_client"],
      [
        "a secret of another app",
        proves((s) => ({ headers: withSecret(s, "web", s.clients.other.secret) })),
        "401 invalid_client",
      ],
      [
        "a secret of an app that has none",
        async (s) => as(s, "spa", "token", { grant_type: "refresh_token", refresh_token: "x", client_secret: "x" }),
        "401 invalid_client",
      ],
      ["not named", proves(() => ({})), "401 invalid_client"],
      ["client_id twice", sends((body) => `${body}&client_id=a&client_id=b`), "400 invalid_request"],
      ["by Bearer", proves((s) => ({ headers: { authorization: `Bearer ${secret(s)}` } })), "401 invalid_client"],
      ["Basic that is no Base64", proves(() => ({ headers: { authorization: "Basic %%%" } })), "401 invalid_client"],
      ["Basic without a colon", proves(() => ({ headers: raw("web") })), "401 invalid_client"],
      ["Basic with half a percent-encoding", proves((s) => ({ headers: raw(`${id(s)}:%zz`) })), "401 invalid_client"],
      [
        "by an assertion, which is not served",
        proves((s) => ({
          fields: {
            client_id: id(s),
            client_assertion: "e30.e30.e30",
            client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
          },
        })),
        "401 invalid_client",
      ],
    ],
    {
      "an empty secret by Basic": [
        "400 invalid_request",
        "RFC 6749, 5.2: a client that tried the Authorization header and failed gets a 401.",
      ],
      "not named": ["400 invalid_request", noClient],
      "by Bearer": ["400 invalid_request", badHeader],
      "Basic that is no Base64": ["400 invalid_request", badHeader],
      "Basic without a colon": ["400 invalid_request", badHeader],
      "Basic with half a percent-encoding": ["400 invalid_request", badHeader],
    },
  );
});

async function tokensOf(s: Subject, client: ClientName = "web"): Promise<{ access: string; refresh: string }> {
  const code = await s.codeOf(authorizeQuery(s.clients[client]));
  const body = await s.get("token", client, redeeming(s, client, code));
  return { access: String(body["access_token"]), refresh: String(body["refresh_token"]) };
}

const refreshing = (token: string | undefined, more: Fields = {}): Fields => ({
  grant_type: "refresh_token",
  refresh_token: token,
  ...more,
});

/** Fresh tokens, refreshed with changes. */
const refreshes =
  (changes: Fields = {}, client: ClientName = "web", { by = client, after = 0 } = {}) =>
  async (s: Subject) => {
    const { refresh } = await tokensOf(s, client);
    if (after > 0) await s.later(after);
    return as(s, by, "token", refreshing(refresh, changes));
  };

describe("token, by a refresh token", () => {
  const usedBefore = (after: number) => async (s: Subject) => {
    const { refresh } = await tokensOf(s);
    await as(s, "web", "token", refreshing(refresh));
    await s.later(after);
    return as(s, "web", "token", refreshing(refresh));
  };
  compare(
    [
      ["a good one", refreshes(), "200"],
      ["an app without a secret", refreshes({}, "spa"), "200"],
      ["narrower", refreshes({ scope: "models:read" }), "200"],
      ["as wide", refreshes({ scope: "models:read chat:write" }), "200"],
      ["with a redirect_uri, which means nothing here", refreshes({ redirect_uri: "https://evil.example/" }), "200"],
      ["29 days idle", refreshes({}, "web", { after: 29 * 86_400 }), "200"],
      ["31 days idle", refreshes({}, "web", { after: 31 * 86_400 }), "400 invalid_grant"],
      ["wider", refreshes({ scope: "chat:write models:read usage:read" }), "400 invalid_scope"],
      ["a scope nobody knows", refreshes({ scope: "nonsense" }), "400 invalid_scope"],
      ["unknown", refreshes({ refresh_token: "nonsense" }), "400 invalid_grant"],
      ["left out", refreshes({ refresh_token: undefined }), "400 invalid_request"],
      [
        "an access token in its place",
        async (s) => as(s, "web", "token", refreshing((await tokensOf(s)).access)),
        "400 invalid_grant",
      ],
      ["of another app", refreshes({}, "web", { by: "other" }), "400 invalid_grant"],
      ["used a moment ago", usedBefore(1), "200"],
      ["used a minute ago", usedBefore(60), "400 invalid_grant"],
      [
        "used a minute ago: its successor",
        async (s) => {
          const { refresh } = await tokensOf(s);
          const next = await s.get("token", "web", refreshing(refresh));
          await s.later(60);
          await as(s, "web", "token", refreshing(refresh));
          return as(s, "web", "token", refreshing(String(next["refresh_token"])));
        },
        "400 invalid_grant",
      ],
    ],
    {
      "used a moment ago": [
        "400 invalid_grant",
        "Our grace of 10 s for the same request, whose answer may have been lost: RFC 9700, 4.14.2, leaves open what a reuse is. They end the grant.",
      ],
    },
  );
});

describe("revoke", () => {
  const revokes =
    (kind: "access" | "refresh", then: "access" | "refresh", client: ClientName = "web", by = client) =>
    async (s: Subject) => {
      const tokens = await tokensOf(s, client);
      const revoked = await as(s, by, "revoke", { token: tokens[kind] });
      const left =
        then === "access" && client === "web"
          ? await as(s, "web", "introspect", { token: tokens.access })
          : await as(s, client, "token", refreshing(tokens.refresh));
      return `${revoked}, then ${left}`;
    };
  compare(
    [
      ["a refresh token", revokes("refresh", "refresh"), "200, then 400 invalid_grant"],
      ["a refresh token: the access token", revokes("refresh", "access"), "200, then 200 inactive"],
      ["an access token", revokes("access", "access"), "200, then 200 inactive"],
      ["an access token: the refresh token", revokes("access", "refresh"), "200, then 400 invalid_grant"],
      ["by an app without a secret", revokes("refresh", "refresh", "spa"), "200, then 400 invalid_grant"],
      ["another app's", revokes("refresh", "refresh", "web", "other"), "200, then 200"],
      ["unknown", (s) => as(s, "web", "revoke", { token: "nonsense" }), "200"],
      [
        "twice",
        async (s) => {
          const { refresh } = await tokensOf(s);
          await as(s, "web", "revoke", { token: refresh });
          return as(s, "web", "revoke", { token: refresh });
        },
        "200",
      ],
      [
        "with a wrong hint",
        async (s) => as(s, "web", "revoke", { token: (await tokensOf(s)).refresh, token_type_hint: "access_token" }),
        "200",
      ],
      [
        "with an unknown hint",
        async (s) => as(s, "web", "revoke", { token: (await tokensOf(s)).refresh, token_type_hint: "nonsense" }),
        "200",
      ],
      ["a forged token of three parts", (s) => as(s, "web", "revoke", { token: "e30.e30.e30" }), "200"],
      ["token left out", (s) => as(s, "web", "revoke", {}), "400 invalid_request"],
      ["token twice", (s) => as(s, "web", "revoke", {}, { body: "token=a&token=b" }), "400 invalid_request"],
      [
        "a wrong secret",
        (s) => s.ask("revoke", { token: "x" }, { headers: withSecret(s, "web", "wrong") }),
        "401 invalid_client",
      ],
      ["not named", (s) => s.ask("revoke", { token: "x" }), "401 invalid_client"],
      ["by GET", (s) => s.ask("revoke", {}, { method: "GET" }), "405"],
    ],
    {
      "another app's": [
        "400 invalid_request, then 200",
        "RFC 7009, 2.1, wants an error, for which 2.2.1 has no code; 5 warns of clients that try tokens: ours say the same as of an unknown one. Nobody's token ends.",
      ],
      "a forged token of three parts": [
        "400 unsupported_token_type",
        "RFC 7009, 2.2: a token that is not valid is a 200; ours are of this type, theirs are not.",
      ],
      "not named": ["400 invalid_request", noClient],
      "by GET": ["404", byGet],
    },
  );
});

describe("introspect", () => {
  const asksAbout =
    (kind: "access" | "refresh", by: ClientName = "web", more: Fields = {}) =>
    async (s: Subject) =>
      as(s, by, "introspect", { token: (await tokensOf(s))[kind], ...more });
  compare(
    [
      ["an access token", asksAbout("access"), "200 active"],
      ["a refresh token", asksAbout("refresh"), "200 active"],
      ["with a wrong hint", asksAbout("access", "web", { token_type_hint: "refresh_token" }), "200 active"],
      ["with an unknown hint", asksAbout("access", "web", { token_type_hint: "nonsense" }), "200 active"],
      ["another app's access token", asksAbout("access", "other"), "200 inactive"],
      ["another app's refresh token", asksAbout("refresh", "other"), "200 inactive"],
      [
        "an hour later",
        async (s) => {
          const { access } = await tokensOf(s);
          await s.later(3_601);
          return as(s, "web", "introspect", { token: access });
        },
        "200 inactive",
      ],
      [
        "a used refresh token",
        async (s) => {
          const { refresh } = await tokensOf(s);
          await as(s, "web", "token", refreshing(refresh));
          return as(s, "web", "introspect", { token: refresh });
        },
        "200 inactive",
      ],
      ["unknown", (s) => as(s, "web", "introspect", { token: "nonsense" }), "200 inactive"],
      ["a forged token of three parts", (s) => as(s, "web", "introspect", { token: "e30.e30.e30" }), "200 inactive"],
      [
        "a code",
        async (s) => as(s, "web", "introspect", { token: await s.codeOf(authorizeQuery(s.clients.web)) }),
        "200 inactive",
      ],
      ["token left out", (s) => as(s, "web", "introspect", {}), "400 invalid_request"],
      [
        "by an app without a secret, its own",
        async (s) => as(s, "spa", "introspect", { token: (await tokensOf(s, "spa")).access }),
        "401 invalid_client",
      ],
      [
        "a wrong secret",
        (s) => s.ask("introspect", { token: "x" }, { headers: withSecret(s, "web", "wrong") }),
        "401 invalid_client",
      ],
      ["not named", (s) => s.ask("introspect", { token: "x" }), "401 invalid_client"],
    ],
    {
      "another app's access token": ["200 active", others],
      "another app's refresh token": ["200 active", others],
      "a forged token of three parts": [
        "400 unsupported_token_type",
        "RFC 7662, 2.2: a token that is not valid is inactive, and no error; ours are of this type, theirs are not.",
      ],
      "by an app without a secret, its own": [
        "200 active",
        "RFC 7662, 2.1: the endpoint requires authorization, against token scanning; a name alone is none.",
      ],
      "not named": ["400 invalid_request", noClient],
    },
  );
});

describe("device", () => {
  const deviceGrantType = "urn:ietf:params:oauth:grant-type:device_code";
  const begun = async (s: Subject) => {
    const body = await s.get("device", "spa", { scope: "chat:write" });
    return { code: String(body["device_code"]), userCode: String(body["user_code"]) };
  };
  const polls = (s: Subject, code: string | undefined, by: ClientName = "spa") =>
    as(s, by, "token", { grant_type: deviceGrantType, device_code: code });
  const decided =
    (decision: "allow" | "deny", { by = "spa" as ClientName, after = 0, times = 1 } = {}) =>
    async (s: Subject) => {
      const { code, userCode } = await begun(s);
      await s.decideDevice(userCode, decision);
      if (after > 0) await s.later(after);
      for (let time = 1; time < times; time++) await polls(s, code, by);
      return polls(s, code, by);
    };
  compare(
    [
      ["a good request", (s) => as(s, "spa", "device", { scope: "chat:write" }), "200"],
      ["by an app with a secret", (s) => as(s, "web", "device", { scope: "chat:write" }), "200"],
      ["no scope", (s) => as(s, "spa", "device", {}), "200"],
      [
        "a scope the app was not registered with",
        (s) => as(s, "spa", "device", { scope: "usage:read" }),
        "400 invalid_scope",
      ],
      ["a scope nobody knows", (s) => as(s, "spa", "device", { scope: "nonsense" }), "400 invalid_scope"],
      [
        "scope twice",
        (s) =>
          as(
            s,
            "spa",
            "device",
            {},
            { body: `${form({ client_id: s.clients.spa.id })}&scope=chat%3Awrite&scope=chat%3Awrite` },
          ),
        "400 invalid_request",
      ],
      ["an unknown client", (s) => s.ask("device", { client_id: "app_nobody" }), "401 invalid_client"],
      ["not named", (s) => s.ask("device", {}), "401 invalid_client"],
      [
        "an app with a secret that sends none",
        (s) => s.ask("device", { client_id: s.clients.web.id }),
        "401 invalid_client",
      ],
      ["by GET", (s) => s.ask("device", {}, { method: "GET" }), "405"],

      ["a poll before anybody decided", async (s) => polls(s, (await begun(s)).code), "400 authorization_pending"],
      [
        "a second one at once",
        async (s) => {
          const { code } = await begun(s);
          await polls(s, code);
          return polls(s, code);
        },
        "400 slow_down",
      ],
      ["allowed", decided("allow"), "200"],
      ["allowed, and asked for again", decided("allow", { times: 2 }), "400 invalid_grant"],
      ["denied", decided("deny"), "400 access_denied"],
      ["allowed, by another app", decided("allow", { by: "native" }), "400 invalid_grant"],
      ["allowed, 11 minutes ago", decided("allow", { after: 660 }), "400 expired_token"],
      [
        "nobody decided in 11 minutes",
        async (s) => {
          const { code } = await begun(s);
          await s.later(660);
          return polls(s, code);
        },
        "400 expired_token",
      ],
      ["unknown", (s) => polls(s, "nonsense"), "400 invalid_grant"],
      ["device_code left out", (s) => polls(s, undefined), "400 invalid_request"],
      ["the user's code in its place", async (s) => polls(s, (await begun(s)).userCode), "400 invalid_grant"],
    ],
    {
      "a scope nobody knows": [
        "200",
        "RFC 8628, 3.1, and RFC 6749, 5.2: a scope that is unknown is invalid_scope; 3.3 lets them leave it out.",
      ],
      "not named": ["400 invalid_request", noClient],
      "by GET": ["500", byGet],
      "a second one at once": [
        "400 authorization_pending",
        "RFC 8628, 3.5: slow_down for who polls faster than the interval; they leave that to a proxy.",
      ],
      "allowed, 11 minutes ago": ["400 invalid_grant", expired],
      "nobody decided in 11 minutes": ["400 invalid_grant", expired],
    },
  );
});
