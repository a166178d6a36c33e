// Tests the small rules of policy: scopes, models of an environment, prices and digests.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../tests/support/principal.ts";
import { GatewayError } from "../base/errors.ts";
import type { Engine } from "../domain/models/engine.ts";
import type { Deployment, Model } from "../domain/models/model.ts";
import type { Principal } from "../domain/principal.ts";
import { requireModel, requireScope, usableModel } from "./authorize.ts";
import { keyDigest } from "./credentials/key-digest.ts";
import { nanoUsdOf } from "./price.ts";

const principal = principalFor({ environment: "test", scopes: new Set(["chat:write"]) });
const model: Model = {
  id: "m",
  created: 0,
  ownedBy: "",
  capabilities: undefined,
  context: undefined,
  environments: ["live", "dev"],
  price: { input: 3, output: 15 },
  deployments: [],
};

function deployment(name: string, local: boolean | undefined): Deployment {
  const engine: Engine = {
    name,
    send: () => Promise.reject(new Error("not used")),
    models: async () => [],
    redact: (text) => text,
  };
  return { engine, model: "m", weight: 1, ...(local === undefined ? {} : { local }) };
}

/** Returns the result of a request for the model `m`. */
function refusalOf(by: Principal, found: Model | undefined): string {
  try {
    requireModel(by, found, "m");
    return "allowed";
  } catch (error) {
    return error instanceof GatewayError ? `${error.code}: ${error.message}` : `not ours: ${error}`;
  }
}

describe("authorization", () => {
  test("admits a present scope and names a missing one in the error", () => {
    requireScope(principal, "chat:write");
    expect(() => requireScope(principal, "models:read")).toThrow("API key lacks required scope: models:read");
  });

  test("treats a model of another environment as missing", () => {
    expect(usableModel(principal, model)).toBeUndefined();
    expect(refusalOf(principal, model)).toBe(refusalOf(principal, undefined));
    expect(refusalOf(principal, { ...model, environments: ["test"] })).toBe("allowed");
  });

  test("treats a model that some key of the chain does not list as missing, under any alias", () => {
    const bounded = (...models: string[][]) =>
      principalFor({ environment: "live", modelAccess: { models, neverLeaves: false } });
    const named = { ...model, id: "llama-8b" };
    expect(usableModel(bounded(["llama-*"]), named)).toBe(named);
    expect(usableModel(bounded(["llama-*"], ["m", "llama-8b"]), named)).toBe(named);
    for (const lists of [[["llama-*"], ["m"]], [["m"]], [[]], [["llama-8"]]]) {
      expect(usableModel(bounded(...lists), named), JSON.stringify(lists)).toBeUndefined();
      expect(refusalOf(bounded(...lists), named)).toBe(refusalOf(principal, undefined));
    }
  });

  test("limits never_leaves requests to local deployments, and hides models without one", () => {
    const stays = principalFor({ environment: "live", modelAccess: { models: [], neverLeaves: true } });
    const [here, there] = [deployment("here", true), deployment("there", false)];
    const both = { ...model, deployments: [there, here, deployment("unsaid", undefined)] };
    expect(usableModel(stays, both)?.deployments).toEqual([here]);
    expect(usableModel(stays, both)).toBe(usableModel(stays, both) as Model);
    expect(both.deployments).toHaveLength(3);
    for (const deployments of [[there], []]) {
      expect(usableModel(stays, { ...model, deployments })).toBeUndefined();
      expect(refusalOf(stays, { ...model, deployments })).toStartWith(
        "permission_denied: The requests of this key never",
      );
    }
    const other = principalFor({ environment: "live", modelAccess: { models: [["x"]], neverLeaves: true } });
    expect(refusalOf(other, { ...model, deployments: [there] })).toBe(refusalOf(principal, undefined));
  });

  test("shortens a long id", () => {
    expect(() => requireModel(principal, undefined, "x".repeat(5_000))).toThrow(/^.{1,260}$/);
  });
});

describe("prices", () => {
  test("prices prompt and completion tokens in USD per million, and reports no cost without a price", () => {
    const usage = { promptTokens: 1_000_000, completionTokens: 200_000 };
    expect(nanoUsdOf(usage, model.price, 0)).toBe(6_000_000_000);
    expect(nanoUsdOf(usage, { input: 0, output: 0 }, 0)).toBe(0);
    expect(nanoUsdOf(usage, undefined, 0)).toBeNull();
    expect(nanoUsdOf({ promptTokens: 0, completionTokens: 0 }, model.price, 0)).toBe(0);
  });

  test("rounds the price of a single token to whole nano-USD", () => {
    expect(nanoUsdOf({ promptTokens: 1, completionTokens: 0 }, { input: 0.0375, output: 0 }, 0)).toBe(38);
    expect(nanoUsdOf({ promptTokens: 3, completionTokens: 7 }, { input: 0.15, output: 0.6 }, 0)).toBe(450 + 4_200);
  });
});

test("makes a key's digest depend on both key and pepper", () => {
  const digests = [
    keyDigest("a", new Uint8Array(32)),
    keyDigest("b", new Uint8Array(32)),
    keyDigest("a", new Uint8Array(32).fill(1)),
  ];
  expect(new Set(digests).size).toBe(3);
  for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{64}$/);
});
