// The small rules of policy: scopes, models of an environment, prices, the first key.
import { describe, expect, test } from "bun:test";
import { type Environment, parseApiKey } from "../domain/api-key.ts";
import type { Model } from "../domain/model.ts";
import type { ApiKeyRecord, KeyStore, Principal } from "../domain/principal.ts";
import { scopes } from "../domain/scope.ts";
import type { UsageRecord } from "../domain/usage.ts";
import { mayUseModel, requireModel, requireScope } from "./authorize.ts";
import { ensureFirstKey } from "./first-key.ts";
import { keyDigest } from "./key-digest.ts";
import { costOf, settle } from "./settle.ts";

const principal: Principal = {
  accountId: "acct_1",
  keyId: "key_1",
  environment: "test",
  scopes: new Set(["chat:write"]),
};
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

describe("settling", () => {
  test("costs USD per million tokens, prompt and completion apart; without a price there is no cost", () => {
    const usage = { promptTokens: 1_000_000, completionTokens: 200_000, estimated: false };
    expect(costOf(usage, model.price)).toBe(6);
    expect(costOf(usage, { input: 0, output: 0 })).toBe(0);
    expect(costOf(usage, undefined)).toBeNull();
    expect(costOf({ promptTokens: 0, completionTokens: 0, estimated: true }, model.price)).toBe(0);
  });

  test("records who, what, how much and how it ended", () => {
    const records: UsageRecord[] = [];
    settle(
      { record: (usage) => void records.push(usage) },
      {
        requestId: "req_1",
        principal,
        operation: "chat",
        model,
        outcome: "failed",
        usage: { promptTokens: 1_000, completionTokens: 0, estimated: true },
        startedAt: 5,
        durationMs: 7,
      },
    );
    expect(records).toEqual([
      {
        requestId: "req_1",
        at: 5,
        accountId: "acct_1",
        keyId: "key_1",
        environment: "test",
        operation: "chat",
        model: "m",
        outcome: "failed",
        promptTokens: 1_000,
        completionTokens: 0,
        estimated: true,
        cost: 0.003,
        durationMs: 7,
      },
    ]);
  });
});

describe("the first key", () => {
  class OneKey implements KeyStore {
    stored: ApiKeyRecord[] = [];
    async findKeyByDigest(): Promise<undefined> {}
    async firstKey(environment: Environment): Promise<ApiKeyRecord | undefined> {
      return this.stored.find((key) => key.environment === environment);
    }
    async insertKey(key: ApiKeyRecord): Promise<void> {
      this.stored.push(key);
    }
  }

  test("is made once for each environment, with every scope, stored as a digest only, its secret given once", async () => {
    const store = new OneKey();
    const pepper = new Uint8Array(32);
    const clock = { nowSeconds: () => 9, monotonicMs: () => 0 };
    const kept: string[] = [];
    const keep = (secret: string) => {
      // Whoever keeps it does so before it is valid.
      expect(store.stored.filter((stored) => stored.digest === keyDigest(secret, pepper))).toEqual([]);
      kept.push(secret);
    };
    const options = { accountId: "acct_1", environment: "live" as const, pepper, clock, keep };
    const { record, key } = await ensureFirstKey(store, options);
    expect(parseApiKey(key ?? "")).toBe("live");
    expect(record).toMatchObject({ accountId: "acct_1", createdAt: 9, expiresAt: null, revokedAt: null });
    expect([...record.scopes]).toEqual([...scopes]);
    expect(record.digest).toBe(keyDigest(key ?? "", pepper));
    expect(JSON.stringify(store.stored)).not.toContain(key ?? "");
    expect(await ensureFirstKey(store, options)).toEqual({ record, key: undefined });
    expect((await ensureFirstKey(store, { ...options, environment: "dev" })).key).toStartWith("sk_dev_hr_");
    expect(store.stored).toHaveLength(2);
    expect(kept).toHaveLength(2);
    expect(kept[0]).toBe(key as string);
  });

  test("has a digest that depends on every part: key and pepper", () => {
    const digests = [
      keyDigest("a", new Uint8Array(32)),
      keyDigest("b", new Uint8Array(32)),
      keyDigest("a", new Uint8Array(32).fill(1)),
    ];
    expect(new Set(digests).size).toBe(3);
    for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{64}$/);
  });
});
