// The small rules of policy: scopes, models of an environment, prices, digests.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../tests/support/principal.ts";
import type { Model } from "../domain/models/model.ts";
import { mayUseModel, requireModel, requireScope } from "./authorize.ts";
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

describe("authorization", () => {
  test("a scope that is there passes, one that is missing is named in the decided words", () => {
    requireScope(principal, "chat:write");
    expect(() => requireScope(principal, "models:read")).toThrow("API key lacks required scope: models:read");
  });

  test("a model of another environment is the same as none", () => {
    expect(mayUseModel(principal, model)).toBe(false);
    const message = (found: Model | undefined) => {
      try {
        requireModel(principal, found, "m");
        return "allowed";
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(message(model)).toBe(message(undefined));
    expect(message({ ...model, environments: ["test"] })).toBe("allowed");
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
