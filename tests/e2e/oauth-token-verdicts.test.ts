// Token requests, good and bad, to our server and to `oidc-provider`: the same verdict, or a reason why not.
import { describe } from "bun:test";
import { as, noClient, redeeming, refreshing, startComparison, tokensOf, withSecret } from "../support/verdict-rows.ts";
import { authorizeQuery, type ClientName, type Fields, form, type Subject } from "../support/verdicts.ts";

const compare = startComparison();

const badHeader =
  "RFC 6749, 5.2: invalid_client with a 401 where the client tried the Authorization header and it failed, or has a method that is not supported.";
const byGet = "RFC 9110, 15.5.6: the resource is there, and takes POST (RFC 6749, 3.2).";

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

/** Fresh tokens, refreshed with changes. */
const refreshes =
  (changes: Fields = {}, client: ClientName = "web", { by = client, after = 0 } = {}) =>
  async (s: Subject) => {
    const { refresh } = await tokensOf(s, client);
    if (after > 0) await s.later(after);
    return as(s, by, "token", refreshing(refresh, changes));
  };

describe("verdicts of /oauth/token for a code", () => {
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

describe("verdicts of /oauth/token for any grant type", () => {
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

describe("verdicts of /oauth/token for client authentication", () => {
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

describe("verdicts of /oauth/token for a refresh token", () => {
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
