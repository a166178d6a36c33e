// Tests delegation: which rights a key may give to other keys, and on which keys it may act.
import { describe, expect, test } from "bun:test";
import { accountFor, keyRecordFor, principalFor } from "../../../tests/support/principal.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { ApiKeyRecord, KeyChain, Principal } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import {
  addressesOf,
  endOf,
  maxChainDepth,
  modelsOf,
  requireDepth,
  requireGrantable,
  requireKeyManager,
  requireWithin,
  toolsOf,
} from "./delegation.ts";

const account = accountFor();
const key = (id: string, more: Partial<ApiKeyRecord> = {}) => keyRecordFor({ id, name: id, ...more });

type Keys = readonly [ApiKeyRecord, ...ApiKeyRecord[]];
const chain = (...keys: Keys): KeyChain => ({ account, keys });

function as(keys: Keys, more: Partial<Principal> = {}): Principal {
  const scopes = new Set<Scope>(keys[0].scopes.filter((scope) => keys.every((one) => one.scopes.includes(scope))));
  return principalFor({ keys, scopes, ...more });
}

/** Returns `ok`, or the code and message of the refusal. */
function outcome(check: () => void): string {
  try {
    check();
    return "ok";
  } catch (error) {
    return error instanceof GatewayError ? `${error.code}: ${error.message}` : `not ours: ${error}`;
  }
}

const limited = { expiresAt: 500, allowedIps: ["10.0.0.0/8", "2001:db8::/32"], rateLimit: 100, rateLimitWindow: 60 };

test("limits quotas that a key gives by its own, unless the chain bounds the other key anyway", () => {
  const quota = { unit: "tokens", amount: 100, per: "day", window: "calendar" } as const;
  const maker = key("maker", { quotas: [quota] });
  const grant = (quotas: ApiKeyRecord["quotas"], makers: readonly ApiKeyRecord[]) =>
    outcome(() => requireGrantable(as([maker]), makers, { quotas }, "changes"));
  expect(grant([], [maker])).toBe("ok");
  expect(grant([{ ...quota, amount: 900 }], [maker])).toBe("ok");
  expect(grant([{ ...quota, amount: 90 }], [])).toBe("ok");
  const refused =
    "permission_denied: quotas: must be at most 100 tokens per day (calendar), a quota of the key that changes it.";
  expect(grant([], [])).toBe(refused);
  expect(grant([{ ...quota, amount: 101 }], [])).toBe(refused);
  expect(grant([{ ...quota, models: ["m"] }], [])).toBe(refused);
  expect(outcome(() => requireWithin(as([maker]), chain(key("other")), "revoke"))).toContain("reaches further");
  expect(outcome(() => requireWithin(as([maker]), chain(key("other", { quotas: [quota] })), "revoke"))).toBe("ok");
});

describe("priorities", () => {
  const grant = (
    priority: Priority | null,
    maker: Keys[number],
    more: Partial<Principal> = {},
    makers: Keys | [] = [],
  ) => outcome(() => requireGrantable(as([maker], more), makers, { priority }, "makes"));

  test("lets no key give a higher priority than its own, and inherits the maker's priority", () => {
    const maker = key("maker", { priority: "normal" });
    const more = { priority: "normal" } as const;
    expect(grant("low", maker, more)).toBe("ok");
    expect(grant("normal", maker, more)).toBe("ok");
    const refused = "permission_denied: priority: must be at most normal, the priority of the key that makes it.";
    expect(grant(null, maker, more)).toBe(refused);
    expect(grant(null, maker, more, [maker])).toBe("ok");
    expect(grant("high", key("plain"), more)).toContain("priority: must be at most normal, the highest that you may");
    expect(grant("high", key("plain"), { priority: "high" })).toBe("ok");
    expect(grant("high", key("plain"))).toContain("An operator raises that of the tier pro");
  });

  test("lets no key act on a key with a higher priority", () => {
    const act = (target: Partial<ApiKeyRecord>) =>
      outcome(() => requireWithin(as([key("maker", { priority: "low" })]), chain(key("other", target)), "revoke"));
    expect(act({ priority: "low" })).toBe("ok");
    expect(act({ priority: "normal" })).toContain("its priority would have to be at most low");
    expect(act({})).toContain("its priority would have to be at most low");
  });
});

describe("models and never_leaves", () => {
  const maker = key("maker", { models: ["gpt-*", "tiny"], neverLeaves: true });
  const grant = (granted: Parameters<typeof requireGrantable>[2], makers: Keys | [] = [maker]) =>
    outcome(() => requireGrantable(as([maker]), makers, granted, "makes"));

  test("lets no key give more models than its own or lift never_leaves, even below that key", () => {
    expect(grant({ models: ["gpt-6*", "tiny"] })).toBe("ok");
    const refused = "must be within gpt-*, tiny, the models of the key that makes it.";
    for (const makers of [[maker], []] as const) {
      expect(grant({ models: ["tiny", "gpt*"] }, [...makers])).toBe(`permission_denied: models[1]: ${refused}`);
      expect(grant({ models: null }, [...makers])).toBe(`permission_denied: models: ${refused}`);
      const leaves = "permission_denied: never_leaves: must be true, as that of the key that makes it.";
      expect(grant({ neverLeaves: false }, [...makers])).toBe(leaves);
    }
    expect(grant({ neverLeaves: true })).toBe("ok");
  });

  test("lets no key or listed member give tools beyond their own", () => {
    const bounded = key("bounded", { tools: ["github", "crm/read_*"] });
    const give = (by: Principal, tools: string[] | null) => outcome(() => requireGrantable(by, [], { tools }, "makes"));
    const person = { id: "usr_a", isOperator: false, role: "admin", sessionId: null } as const;
    for (const by of [as([bounded]), as([bounded], { person })]) {
      expect(give(by, ["github/search", "crm/read_one"])).toBe("ok");
      expect(give(by, [])).toBe("ok");
      expect(give(by, ["github", "crm"])).toContain("tools[1]: must be within github, crm/read_*, the tools");
      expect(give(by, null)).toContain("tools: must be within github, crm/read_*, the tools");
    }
    expect(toolsOf(as([key("a")]))).toBeUndefined();
    expect(toolsOf(as([bounded, key("b", { tools: ["git*/read", "crm"] })]))).toEqual(["crm/read_*", "github/read"]);
    expect(toolsOf(as([bounded, key("b", { tools: [] })]))).toEqual([]);
    // The account's list is not copied into the new key: it applies as it is at the time of use.
    const account = { ...as([key("a")]).account, tools: ["github"] };
    expect(toolsOf(as([key("a")], { account, tools: { lists: [["github"]] } }))).toBeUndefined();
  });

  test("gives a new key the models that all lists of its makers share", () => {
    const withModels = (...models: string[][]) => as([maker], { modelAccess: { models, neverLeaves: false } });
    expect(modelsOf(as([key("a")]))).toBeUndefined();
    expect(modelsOf(withModels())).toBeUndefined();
    expect(modelsOf(withModels(["tiny", "gpt-*"]))).toEqual(["gpt-*", "tiny"]);
    expect(modelsOf(withModels(["tiny", "gpt-*"], ["gpt-6*"]))).toEqual(["gpt-6*"]);
    expect(modelsOf(withModels(["tiny"], ["gpt-*"]))).toEqual([]);
  });

  test("lets a key act only on keys within its models and never_leaves", () => {
    const act = (more: Partial<ApiKeyRecord>) =>
      outcome(() => requireWithin(as([maker]), chain(key("other", more)), "change"));
    expect(act({ models: ["tiny"], neverLeaves: true })).toBe("ok");
    expect(act({ models: ["tiny"] })).toContain("its never_leaves would have to be true");
    expect(act({ neverLeaves: true })).toContain("its models would have to be within gpt-*, tiny");
  });

  test("lets a key drop none of its own tags, and act on keys with other tags", () => {
    const tagged = key("tagged", { tags: ["a", "b"] });
    const change = (tags: string[], makers: Keys | [] = []) =>
      outcome(() => requireGrantable(as([tagged]), makers, { tags }, "changes"));
    expect(change(["a", "b", "c"])).toBe("ok");
    expect(change(["a"])).toBe(
      "permission_denied: tags: must be with a, b among them, the tags of the key that changes it.",
    );
    expect(change([], [tagged])).toBe("ok");
    expect(outcome(() => requireWithin(as([tagged]), chain(key("other")), "revoke"))).toBe("ok");
  });
});

test("lets no app manage keys", () => {
  expect(outcome(() => requireKeyManager(as([key("a")])))).toBe("ok");
  expect(outcome(() => requireKeyManager(as([key("a")], { appId: "app_1" })))).toStartWith("permission_denied: Apps");
});

test("limits a chain to eight keys", () => {
  const keys = (n: number): Keys => [key("k0"), ...Array.from({ length: n - 1 }, (_, i) => key(`k${i + 1}`))];
  expect(outcome(() => requireDepth(as(keys(maxChainDepth - 1))))).toBe("ok");
  expect(outcome(() => requireDepth(as(keys(maxChainDepth))))).toStartWith("permission_denied: At most 8 keys");
});

describe("the end of a credential", () => {
  test("ends a credential with the first of its keys, by expiry or scheduled revocation, and with its token", () => {
    expect(endOf(as([key("a")]))).toBeNull();
    expect(endOf(as([key("a", { expiresAt: 300 }), key("b", { expiresAt: 200 })]))).toBe(200);
    expect(endOf(as([key("a", { expiresAt: 300, revokedAt: 250 })]))).toBe(250);
    expect(endOf(as([key("a", { expiresAt: 300 })], { tokenExpiresAt: 100 }))).toBe(100);
  });
});

test("allows a credential only the addresses that all of its keys share", () => {
  expect(addressesOf(as([key("a")]))).toBeUndefined();
  expect(addressesOf(as([key("a"), key("b", { allowedIps: ["10.0.0.0/8"] })]))).toEqual(["10.0.0.0/8"]);
  const inner = key("a", { allowedIps: ["10.1.0.0/16", "192.0.2.1"] });
  const outer = key("b", { allowedIps: ["10.0.0.0/8", "10.1.2.3", "::1"] });
  expect(addressesOf(as([inner, outer]))).toEqual(["10.1.0.0/16", "10.1.2.3"]);
  expect(addressesOf(as([key("a", { allowedIps: ["::1"] }), outer]))).toEqual(["::1"]);
  expect(addressesOf(as([key("a", { allowedIps: ["::2"] }), outer]))).toEqual([]);
});

describe("what a key may grant to another", () => {
  const maker = as([
    key("a", { ...limited, scopes: ["chat:read", "keys:manage"], monthlyTokens: 1_000, monthlySpend: 5 }),
  ]);
  const grant = (granted: Parameters<typeof requireGrantable>[2], principal = maker) =>
    outcome(() => requireGrantable(principal, principal.keys, granted, "makes"));

  test("lets a key grant exactly its own bounds, and less", () => {
    const all = { ...limited, scopes: ["chat:read"] as const, monthlyTokens: 1_000, monthlySpend: 5 };
    expect(grant(all)).toBe("ok");
    expect(grant({ expiresAt: 499, allowedIps: ["10.9.9.9", "2001:db8:1::/48"], monthlyTokens: 0 })).toBe("ok");
    expect(grant({})).toBe("ok");
  });

  test.each<[string, Parameters<typeof requireGrantable>[2], string]>([
    [
      "a scope",
      { scopes: ["chat:read", "chat:write"] },
      "insufficient_scope: API key lacks required scope: chat:write",
    ],
    [
      "the operator's scope",
      { scopes: ["admin:manage"] },
      "insufficient_scope: API key lacks required scope: admin:manage",
    ],
    [
      "a later expiry",
      { expiresAt: 501 },
      "permission_denied: expires_at: must be at most 500, the expiry of the key that makes it.",
    ],
    [
      "no expiry",
      { expiresAt: null },
      "permission_denied: expires_at: must be at most 500, the expiry of the key that makes it.",
    ],
    [
      "another address",
      { allowedIps: ["10.0.0.1", "11.0.0.1"] },
      "permission_denied: allowed_ips[1]: must be within 10.0.0.0/8, 2001:db8::/32, the addresses of the key that makes it.",
    ],
    [
      "a wider range",
      { allowedIps: ["8.0.0.0/5"] },
      "permission_denied: allowed_ips[0]: must be within 10.0.0.0/8, 2001:db8::/32, the addresses of the key that makes it.",
    ],
    [
      "any address",
      { allowedIps: [] },
      "permission_denied: allowed_ips: must be within 10.0.0.0/8, 2001:db8::/32, the addresses of the key that makes it.",
    ],
    [
      "a larger limit",
      { rateLimit: 101, rateLimitWindow: 6_000 },
      "permission_denied: rate_limit: must be at most 100 and no more than 100 per 60 seconds, the limit of the key that makes it.",
    ],
    [
      "the same limit sooner again",
      { rateLimit: 100, rateLimitWindow: 59 },
      "permission_denied: rate_limit: must be at most 100 and no more than 100 per 60 seconds, the limit of the key that makes it.",
    ],
    [
      "more tokens",
      { monthlyTokens: 1_001 },
      "permission_denied: monthly_tokens: must be at most 1000, the quota of the key that makes it.",
    ],
    [
      "more money",
      { monthlySpend: 5.01 },
      "permission_denied: monthly_spend: must be at most 5, the quota of the key that makes it.",
    ],
  ])("never lets a key grant %s", (_what, granted, refusal) => {
    expect(grant(granted)).toBe(refusal);
  });

  test("lets a key grant no limit where the maker's limit applies anyway", () => {
    expect(grant({ rateLimit: null, rateLimitWindow: null, monthlyTokens: null, monthlySpend: null })).toBe("ok");
  });

  test("requires a limit for a key that the maker does not bound, and for the key itself", () => {
    const widened = { rateLimit: null, rateLimitWindow: null };
    expect(outcome(() => requireGrantable(maker, [], widened, "changes"))).toContain("rate_limit: must be at most 100");
    expect(outcome(() => requireGrantable(maker, [], { monthlySpend: null }, "changes"))).toContain("monthly_spend:");
  });

  test("requires a grant within every key of the chain and within the token", () => {
    const far = as([key("a"), key("b", { expiresAt: 300, monthlyTokens: 10 })]);
    expect(grant({ expiresAt: 301 }, far)).toContain("at most 300");
    expect(grant({ monthlyTokens: 11 }, far)).toContain("at most 10");
    expect(grant({ expiresAt: 201 }, as([key("a")], { tokenExpiresAt: 200 }))).toContain("at most 200");
    expect(grant({ scopes: ["chat:read"] }, as([key("a")], { scopes: new Set(["keys:manage"]) }))).toStartWith(
      "insufficient_scope",
    );
  });

  test("lets a rotated key grant nothing beyond the end of its overlap", () => {
    expect(grant({ expiresAt: null }, as([key("a", { revokedAt: 400 })]))).toContain("expires_at: must be at most 400");
  });
});

describe("keys that act on other keys", () => {
  const act = (principal: Principal, target: KeyChain, verb: "change" | "rotate" | "revoke" = "change") =>
    outcome(() => requireWithin(principal, target, verb));

  test("lets a key act on another within its own bounds, made by any key", () => {
    const actor = as([key("a", limited)]);
    const within = { expiresAt: 400, allowedIps: ["10.1.1.1"], rateLimit: 10, rateLimitWindow: 60 };
    expect(act(actor, chain(key("b", within)))).toBe("ok");
    expect(act(as([key("a")]), chain(key("b")))).toBe("ok");
    expect(act(as([key("a")]), chain(key("b")), "revoke")).toBe("ok");
  });

  test("lets a key rotate only itself and the keys that it made", () => {
    const actor = as([key("a")]);
    expect(act(actor, chain(key("b")), "rotate")).toContain("permission_denied");
    expect(act(actor, chain(key("a")), "rotate")).toBe("ok");
    expect(act(actor, chain(key("b"), key("a")), "rotate")).toBe("ok");
    // A rotated key that is still valid does not get the secret of its successor's successor.
    expect(act(actor, chain(key("c", { limitId: "a" })), "rotate")).toContain("permission_denied");
    const operator = as([key("o", { scopes: ["admin:manage", ...key("b").scopes] })]);
    expect(act(operator, chain(key("b")), "rotate")).toBe("ok");
  });

  test("never lets a key act on a key above it, even after a rotation", () => {
    const child = as([key("c"), key("new", { limitId: "old" })]);
    for (const verb of ["change", "revoke", "rotate"] as const) {
      expect(act(child, chain(key("old", { limitId: "old" })), verb)).toContain("permission_denied");
    }
  });

  test.each<[string, Partial<ApiKeyRecord>, string]>([
    [
      "has a scope that it lacks",
      { scopes: ["admin:manage"] },
      "insufficient_scope: API key lacks required scope: admin:manage",
    ],
    [
      "ends later",
      { expiresAt: 501 },
      "its expires_at would have to be at most 500, the expiry of the key in the request",
    ],
    ["never ends", { expiresAt: null }, "expires_at would have to be at most 500"],
    ["works from anywhere", { allowedIps: [] }, "allowed_ips would have to be within 10.0.0.0/8"],
    ["has a larger limit", { rateLimit: 101 }, "rate_limit would have to be at most 100"],
    ["has no limit", { rateLimit: null, rateLimitWindow: null }, "rate_limit would have to be at most 100"],
  ])("does not let a key act on a key that %s", (_what, more, refusal) => {
    const actor = as([key("a", limited)]);
    for (const verb of ["change", "rotate", "revoke"] as const) {
      expect(act(actor, chain(key("b", { ...limited, ...more })), verb)).toContain(refusal);
    }
  });

  test("lets a key act on any key that it made itself", () => {
    const maker = key("a", { ...limited, scopes: ["chat:read", "keys:manage"] });
    expect(act(as([maker]), chain(key("b"), maker))).toBe("ok");
    expect(act(as([maker]), chain(key("c"), key("b"), maker), "revoke")).toBe("ok");
  });

  test("lets a key act on itself, and not on an equal key above it", () => {
    const maker = key("a");
    const made = key("b", limited);
    expect(act(as([made, maker]), chain(made, maker))).toBe("ok");
    for (const verb of ["change", "rotate", "revoke"] as const) {
      expect(act(as([key("b"), maker]), chain(maker), verb)).toBe(
        `permission_denied: A key cannot ${verb} a key that bounds it.`,
      );
    }
  });

  test("lets a token act for its own scopes only, and rotate nothing that outlives it", () => {
    const own = key("a", { expiresAt: 300 });
    const narrow = as([own], { scopes: new Set<Scope>(["keys:manage"]), tokenExpiresAt: 200 });
    expect(act(narrow, chain(own))).toBe("insufficient_scope: API key lacks required scope: chat:read");
    const short = as([own], { tokenExpiresAt: 200 });
    expect(act(short, chain(own), "rotate")).toStartWith("permission_denied: An access token cannot rotate");
    expect(act(short, chain(key("b"), own), "rotate")).toStartWith("permission_denied: An access token cannot rotate");
    expect(act(short, chain(own), "revoke")).toBe("ok");
    expect(act(short, chain(key("c", { expiresAt: 250 })), "revoke")).toContain("at most 200");
  });
});

describe("actions of users by role", () => {
  const membership = key("mbr_1_live", { kind: "membership", personId: "usr_1", role: "member" });
  const grant = key("grt_1", { kind: "grant", personId: "usr_1", appId: "headrace-cli", parentId: membership.id });
  const person = { id: "usr_1", role: "admin", isOperator: false, sessionId: "ses_1" } as const;
  const session = (more: Partial<Principal> = {}) => as([membership], { person, ...more });
  const act = (principal: Principal, target: KeyChain, verb: "change" | "rotate" | "revoke") =>
    outcome(() => requireWithin(principal, target, verb));

  test("lets a user act by role on keys that neither come from the session nor are bounded by it", () => {
    for (const verb of ["change", "rotate", "revoke"] as const) {
      expect(act(session(), chain(key("b"), key("a")), verb)).toBe("ok");
    }
  });

  test("lets only a signed-in operator change an operator's key", () => {
    const operators = chain(key("b", { scopes: ["admin:manage"] }));
    const operator = session({ scopes: new Set<Scope>([...membership.scopes, "admin:manage"]) });
    for (const verb of ["change", "rotate", "revoke"] as const) {
      expect(act(session(), operators, verb)).toBe(
        `permission_denied: Only an operator may ${verb} an operator's key.`,
      );
      expect(act(operator, operators, verb)).toBe("ok");
    }
  });

  test("gives a narrowed CLI login no secret with more scopes", () => {
    const login = as([grant, membership], { person, scopes: new Set<Scope>(["keys:manage"]), tokenExpiresAt: 100 });
    expect(act(login, chain(key("b")), "rotate")).toBe("insufficient_scope: API key lacks required scope: chat:read");
    expect(act(login, chain(key("b", { scopes: ["keys:manage"] })), "rotate")).toBe("ok");
    expect(act(login, chain(key("b")), "revoke")).toBe("ok");
    expect(outcome(() => requireGrantable(login, [], { scopes: ["chat:read"] }, "changes"))).toStartWith(
      "insufficient_scope",
    );
  });

  test("shows a user no secret of a key that may use more tools than the user", () => {
    const bounded = as([{ ...membership, tools: ["github"] }], { person });
    const refused = "permission_denied: tools: must be within github, the tools that you may use yourself.";
    expect(act(bounded, chain(key("b")), "rotate")).toBe(refused);
    expect(act(bounded, chain(key("b", { tools: ["github/read"] })), "rotate")).toBe("ok");
    expect(act(bounded, chain(key("b")), "revoke")).toBe("ok");
  });

  test("lets a user grant no scope that the key's parent does not have", () => {
    const operator = session({ scopes: new Set<Scope>([...membership.scopes, "admin:manage"]) });
    expect(outcome(() => requireGrantable(operator, [membership], { scopes: ["admin:manage"] }, "makes"))).toBe(
      "permission_denied: scopes: admin:manage is not among the scopes of a member's membership.",
    );
    const maker = key("a", { scopes: ["chat:read"] });
    expect(outcome(() => requireGrantable(session(), [maker], { scopes: ["chat:write"] }, "changes"))).toBe(
      "permission_denied: scopes: chat:write is not among the scopes of what this key was made with.",
    );
    expect(outcome(() => requireGrantable(session(), [maker], { scopes: ["chat:read"] }, "changes"))).toBe("ok");
  });

  test("lets a key outlive the session or login that made it", () => {
    expect(endOf(as([grant, membership], { person, tokenExpiresAt: 100 }))).toBeNull();
    expect(outcome(() => requireGrantable(session(), [], { expiresAt: null, monthlyTokens: null }, "makes"))).toBe(
      "ok",
    );
  });
});
