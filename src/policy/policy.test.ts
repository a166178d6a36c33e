// The small rules of policy: scopes, models of an environment, prices, digests.
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

/** What comes of asking for `m`. */
function told(by: Principal, found: Model | undefined): string {
  try {
    requireModel(by, found, "m");
    return "allowed";
  } catch (error) {
    return error instanceof GatewayError ? `${error.code}: ${error.message}` : `not ours: ${error}`;
  }
}

describe("authorization", () => {
  test("a scope that is there passes, one that is missing is named in the decided words", () => {
    requireScope(principal, "chat:write");
    expect(() => requireScope(principal, "models:read")).toThrow("API key lacks required scope: models:read");
  });

  test("a model of another environment is the same as none", () => {
    expect(usableModel(principal, model)).toBeUndefined();
    expect(told(principal, model)).toBe(told(principal, undefined));
    expect(told(principal, { ...model, environments: ["test"] })).toBe("allowed");
  });

  test("a model that any key of the chain does not name is the same as none, by whatever name it is asked for", () => {
    const bounded = (...models: string[][]) =>
      principalFor({ environment: "live", reach: { models, neverLeaves: false } });
    const named = { ...model, id: "llama-8b" };
    expect(usableModel(bounded(["llama-*"]), named)).toBe(named);
    expect(usableModel(bounded(["llama-*"], ["m", "llama-8b"]), named)).toBe(named);
    for (const lists of [[["llama-*"], ["m"]], [["m"]], [[]], [["llama-8"]]]) {
      expect(usableModel(bounded(...lists), named), JSON.stringify(lists)).toBeUndefined();
      expect(told(bounded(...lists), named)).toBe(told(principal, undefined));
    }
  });

  test("requests that never leave have the deployments that are marked as local, and no model without one", () => {
    const stays = principalFor({ environment: "live", reach: { models: [], neverLeaves: true } });
    const [here, there] = [deployment("here", true), deployment("there", false)];
    const both = { ...model, deployments: [there, here, deployment("unsaid", undefined)] };
    expect(usableModel(stays, both)?.deployments).toEqual([here]);
    expect(usableModel(stays, both)).toBe(usableModel(stays, both) as Model);
    expect(both.deployments).toHaveLength(3);
    for (const deployments of [[there], []]) {
      expect(usableModel(stays, { ...model, deployments })).toBeUndefined();
      expect(told(stays, { ...model, deployments })).toStartWith("permission_denied: The requests of this key never");
    }
    const other = principalFor({ environment: "live", reach: { models: [["x"]], neverLeaves: true } });
    expect(told(other, { ...model, deployments: [there] })).toBe(told(principal, undefined));
  });

  test("a long id is shown short", () => {
    expect(() => requireModel(principal, undefined, "x".repeat(5_000))).toThrow(/^.{1,260}$/);
  });
});

describe("prices", () => {
  test("prices are USD per million tokens, prompt and completion apart; without a price there is no cost", () => {
    const usage = { promptTokens: 1_000_000, completionTokens: 200_000 };
    expect(nanoUsdOf(usage, model.price, 0)).toBe(6_000_000_000);
    expect(nanoUsdOf(usage, { input: 0, output: 0 }, 0)).toBe(0);
    expect(nanoUsdOf(usage, undefined, 0)).toBeNull();
    expect(nanoUsdOf({ promptTokens: 0, completionTokens: 0 }, model.price, 0)).toBe(0);
  });

  test("prices of a single token come to whole nano-USD", () => {
    expect(nanoUsdOf({ promptTokens: 1, completionTokens: 0 }, { input: 0.0375, output: 0 }, 0)).toBe(38);
    expect(nanoUsdOf({ promptTokens: 3, completionTokens: 7 }, { input: 0.15, output: 0.6 }, 0)).toBe(450 + 4_200);
  });
});

test("a key's digest depends on every part: key and pepper", () => {
  const digests = [
    keyDigest("a", new Uint8Array(32)),
    keyDigest("b", new Uint8Array(32)),
    keyDigest("a", new Uint8Array(32).fill(1)),
  ];
  expect(new Set(digests).size).toBe(3);
  for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{64}$/);
});
