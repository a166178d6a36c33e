// Revocation, introspection and devices, at our server and at `oidc-provider`: the same verdict, or a reason why not.
import { describe } from "bun:test";
import { as, noClient, refreshing, startComparison, tokensOf, withSecret } from "../support/verdict-rows.ts";
import { authorizeQuery, type ClientName, type Fields, form, type Subject } from "../support/verdicts.ts";

const compare = startComparison();

const byGet = "RFC 9110, 15.5.6: the resource is there, and takes POST (RFC 6749, 3.2).";
const others =
  "RFC 7662, 4: a client is not told of tokens that are none of its business; they leave that policy to be set.";
const expired =
  "RFC 8628, 3.5: expired_token. Theirs is as well, where the store still knows the code; the one they bring forgets it on time.";

// hardening: A11
describe("verdicts of /oauth/revoke", () => {
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

// hardening: A11
describe("verdicts of /oauth/introspect", () => {
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

describe("verdicts of the device endpoints", () => {
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
