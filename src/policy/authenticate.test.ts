// Authentication: which credentials count, how long a cached key is believed, and what only the log learns.
import { beforeEach, describe, expect, test } from "bun:test";
import { type Environment, generateApiKey } from "../domain/api-key.ts";
import { GatewayError } from "../domain/errors.ts";
import type { ApiKeyRecord, KeyStore } from "../domain/principal.ts";
import { Authenticator, type PresentedCredentials } from "./authenticate.ts";
import { keyDigest } from "./key-digest.ts";

const pepper = new Uint8Array(32).fill(7);
const now = { seconds: 1_800_000_000, ms: 0 };
const clock = { nowSeconds: () => now.seconds, monotonicMs: () => now.ms };

/** A key store in memory that counts its reads. */
class MemoryKeys implements KeyStore {
  readonly records = new Map<string, ApiKeyRecord>();
  reads = 0;
  failure: Error | undefined;

  async findKeyByDigest(digest: string): Promise<ApiKeyRecord | undefined> {
    this.reads++;
    if (this.failure) throw this.failure;
    return this.records.get(digest);
  }

  async firstKey(): Promise<ApiKeyRecord | undefined> {
    return undefined;
  }

  async insertKey(key: ApiKeyRecord): Promise<void> {
    this.records.set(key.digest, key);
  }

  /** Stores a key and gives its secret. */
  add(environment: Environment, more: Partial<ApiKeyRecord> = {}): string {
    const key = generateApiKey(environment);
    const digest = keyDigest(key, pepper);
    this.records.set(digest, {
      id: `key_${this.records.size}`,
      accountId: "acct_1",
      name: "",
      environment,
      digest,
      prefix: "",
      last4: "",
      scopes: ["chat:write"],
      createdAt: 0,
      expiresAt: null,
      revokedAt: null,
      ...more,
    });
    return key;
  }

  change(key: string, more: Partial<ApiKeyRecord>): void {
    const digest = keyDigest(key, pepper);
    const record = this.records.get(digest);
    if (record) this.records.set(digest, { ...record, ...more });
  }
}

let keys: MemoryKeys;
let authenticator: Authenticator;

beforeEach(() => {
  keys = new MemoryKeys();
  authenticator = new Authenticator({ keys, pepper, mode: "development", clock });
  now.seconds = 1_800_000_000;
  now.ms = 0;
});

function present(parts: Partial<PresentedCredentials>): PresentedCredentials {
  return { authorization: null, apiKey: null, isLocal: () => true, ...parts };
}

/** The reason of a refusal, as the log has it; "accepted" where there is none. */
async function outcome(parts: Partial<PresentedCredentials>, by = authenticator): Promise<string> {
  try {
    await by.authenticate(present(parts));
    return "accepted";
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError);
    const { code, message, detail } = error as GatewayError;
    expect([code, message]).toEqual(["invalid_api_key", "Invalid API key provided"]);
    return detail ?? "";
  }
}

describe("credentials", () => {
  test("a key is accepted as bearer and as X-API-Key, and gives account, environment and scopes", async () => {
    const key = keys.add("live");
    for (const parts of [{ authorization: `Bearer ${key}` }, { apiKey: key }, { authorization: `bearer   ${key} ` }]) {
      expect(await authenticator.authenticate(present(parts))).toEqual({
        accountId: "acct_1",
        keyId: "key_0",
        environment: "live",
        scopes: new Set(["chat:write"]),
      });
    }
  });

  test("every refusal has the same message, and its reason for the log alone", async () => {
    const key = keys.add("live");
    expect(await outcome({})).toBe("missing");
    expect(await outcome({ apiKey: "" })).toBe("missing");
    expect(await outcome({ authorization: `Basic ${key}` })).toBe("authorization_not_bearer");
    expect(await outcome({ authorization: "" })).toBe("authorization_not_bearer");
    expect(await outcome({ apiKey: "nonsense" })).toBe("malformed");
    expect(await outcome({ apiKey: generateApiKey("live") })).toBe("unknown");
    expect(await outcome({ apiKey: keys.add("live", { revokedAt: 1 }) })).toBe("revoked");
    expect(await outcome({ apiKey: keys.add("live", { expiresAt: 1 }) })).toBe("expired");
  });

  test("two different credentials are refused even when both are good; the same one twice is one", async () => {
    const [one, two] = [keys.add("live"), keys.add("live")];
    expect(await outcome({ authorization: `Bearer ${one}`, apiKey: two })).toBe("two_credentials");
    expect(await outcome({ authorization: `Bearer ${one}`, apiKey: one })).toBe("accepted");
  });

  test("a malformed key is refused without a look into the store", async () => {
    await outcome({ apiKey: "sk_live_hr_nonsense" });
    await outcome({ apiKey: `${generateApiKey("live").slice(0, -1)}!` });
    expect(keys.reads).toBe(0);
  });

  test("a key whose digest was made under another pepper is unknown", async () => {
    const key = keys.add("live");
    const other = new Authenticator({ keys, pepper: new Uint8Array(32).fill(8), mode: "development", clock });
    expect(await outcome({ apiKey: key }, other)).toBe("unknown");
  });
});

describe("environments", () => {
  test("a development key needs a local request; the others do not", async () => {
    const remote = { isLocal: () => false };
    expect(await outcome({ apiKey: keys.add("dev"), ...remote })).toBe("dev_key_not_local");
    expect(await outcome({ apiKey: keys.add("dev") })).toBe("accepted");
    expect(await outcome({ apiKey: keys.add("live"), ...remote })).toBe("accepted");
    expect(await outcome({ apiKey: keys.add("test"), ...remote })).toBe("accepted");
  });

  test("a development key is refused in production even where it is local, without a look into the store", async () => {
    const production = new Authenticator({ keys, pepper, mode: "production", clock });
    expect(await outcome({ apiKey: keys.add("dev") }, production)).toBe("dev_key_in_production");
    expect(keys.reads).toBe(0);
    expect(await outcome({ apiKey: keys.add("live") }, production)).toBe("accepted");
  });

  test("a cached development key is still checked for where it comes from", async () => {
    const key = keys.add("dev");
    expect(await outcome({ apiKey: key })).toBe("accepted");
    expect(await outcome({ apiKey: key, isLocal: () => false })).toBe("dev_key_not_local");
  });
});

describe("the cache", () => {
  test("spares the store while a key is warm, for a second at most", async () => {
    const key = keys.add("live");
    for (now.ms of [0, 1, 500, 999]) expect(await outcome({ apiKey: key })).toBe("accepted");
    expect(keys.reads).toBe(1);
    now.ms = 1_000;
    await outcome({ apiKey: key });
    expect(keys.reads).toBe(2);
  });

  test("a revoked key is refused within a second of its revocation, however busy it is", async () => {
    const key = keys.add("live");
    await outcome({ apiKey: key });
    keys.change(key, { revokedAt: now.seconds });
    for (now.ms = 0; now.ms < 1_000; now.ms += 50) await outcome({ apiKey: key });
    expect(await outcome({ apiKey: key })).toBe("revoked");
  });

  test("a removed key is refused within a second", async () => {
    const key = keys.add("live");
    await outcome({ apiKey: key });
    keys.records.clear();
    now.ms = 1_000;
    expect(await outcome({ apiKey: key })).toBe("unknown");
  });

  test("expiry is kept to the second, cached or not", async () => {
    const key = keys.add("live", { expiresAt: now.seconds + 1 });
    expect(await outcome({ apiKey: key })).toBe("accepted");
    now.seconds += 1;
    expect(await outcome({ apiKey: key })).toBe("expired");
    expect(keys.reads).toBe(1);
  });

  test("a clock that is set back does not revive a cached key: only the monotonic clock counts its age", async () => {
    const key = keys.add("live");
    await outcome({ apiKey: key });
    keys.change(key, { revokedAt: now.seconds });
    now.seconds -= 86_400;
    now.ms = 1_000;
    expect(await outcome({ apiKey: key })).toBe("revoked");
  });

  test("unknown keys are not remembered: a key works as soon as it is stored", async () => {
    const key = generateApiKey("live");
    expect(await outcome({ apiKey: key })).toBe("unknown");
    const digest = keyDigest(key, pepper);
    const known = keys.records.get(keyDigest(keys.add("live"), pepper)) as ApiKeyRecord;
    keys.records.set(digest, { ...known, digest });
    expect(await outcome({ apiKey: key })).toBe("accepted");
  });

  test("ten thousand other keys push the oldest out and no more: it is read again and still accepted", async () => {
    const first = keys.add("live");
    await outcome({ apiKey: first });
    for (let i = 0; i < 10_000; i++) await outcome({ apiKey: keys.add("live") });
    const reads = keys.reads;
    expect(await outcome({ apiKey: first })).toBe("accepted");
    expect(keys.reads).toBe(reads + 1);
  });

  test("a store that cannot be read refuses nobody as unknown: it is a fault, not a wrong key", async () => {
    const key = keys.add("live");
    keys.failure = new Error("disk gone");
    await expect(authenticator.authenticate(present({ apiKey: key }))).rejects.toThrow("disk gone");
    keys.failure = undefined;
    expect(await outcome({ apiKey: key })).toBe("accepted");
  });
});
