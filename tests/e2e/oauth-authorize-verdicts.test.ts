// Authorization requests, good and bad, to our server and to `oidc-provider`: the same verdict, or a reason why not.
import { describe } from "bun:test";
import { startComparison, tokensOf } from "../support/verdict-rows.ts";
import { authorizeQuery, type ClientName, type Fields, type Subject } from "../support/verdicts.ts";

const compare = startComparison();

const asks =
  (changes: Fields = {}, client: ClientName = "web", more = "") =>
  (subject: Subject) =>
    subject.authorize(authorizeQuery(subject.clients[client], changes) + more);

// hardening: A2
describe("verdicts of /oauth/authorize", () => {
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
