// All that authentication needs, on a real database in a temporary directory, with a clock and a store that a test controls.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log, LogFields } from "../../src/base/log.ts";
import { displayParts, type Environment, generateApiKey } from "../../src/domain/api-key.ts";
import type { AuditEvent } from "../../src/domain/audit.ts";
import type { ApiKeyRecord, KeyStore } from "../../src/domain/principal.ts";
import { AccessTokens } from "../../src/policy/credentials/access-tokens.ts";
import {
  Authenticator,
  type AuthenticatorOptions,
  type PresentedCredentials,
} from "../../src/policy/credentials/authenticate.ts";
import { KeyActivity } from "../../src/policy/credentials/key-activity.ts";
import { keyDigest } from "../../src/policy/credentials/key-digest.ts";
import { SigningKeys } from "../../src/policy/credentials/signing-keys.ts";
import { RefusalLog } from "../../src/policy/records/refusal-log.ts";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";
import { SqlSigningKeyStore } from "../../src/storage/tables/signing-key-store.ts";
import { keyRecordFor } from "./principal.ts";
import { anyCredential } from "./unlimited.ts";

export const pepper = new Uint8Array(32).fill(7);
export const sealingKey = new Uint8Array(32).fill(9);
export const issuer = "https://headrace.example";
export const audience = `${issuer}/v1`;

/** A store whose calls a test counts, lets fail, or holds up after they were answered. */
export interface Switch {
  calls: Record<string, number>;
  /** Calls that the database has answered, arrived or not. */
  answered: number;
  failure: Error | undefined;
  /** Awaited between the answer of the database and its arrival. */
  held: Promise<void> | undefined;
}

function switchable<Store extends object>(store: Store): { store: Store; state: Switch } {
  const state: Switch = { calls: {}, answered: 0, failure: undefined, held: undefined };
  const proxy = new Proxy(store, {
    get(target, name: string) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return async (...args: unknown[]) => {
        state.calls[name] = (state.calls[name] ?? 0) + 1;
        const { failure } = state;
        if (failure) {
          await state.held;
          throw failure;
        }
        const result: unknown = await Reflect.apply(method, target, args);
        state.answered++;
        await state.held;
        return result;
      };
    },
  });
  return { store: proxy, state };
}

export const testEvent = (at = 1_800_000_000): AuditEvent => ({
  id: `audit_${Bun.randomUUIDv7()}`,
  at,
  action: "key.updated",
  actor: { type: "operator" },
  accountId: null,
  targetId: null,
  clientAddress: null,
  requestId: null,
  detail: {},
});

export interface RecordingLog extends Log {
  lines: { event: string; fields: LogFields | undefined }[];
}

function recordingLog(): RecordingLog {
  const lines: RecordingLog["lines"] = [];
  const write = (event: string, fields?: LogFields) => void lines.push({ event, fields });
  return { lines, info: write, warn: write, error: write };
}

export type Credentials = Awaited<ReturnType<typeof openCredentials>>;

/** One database; `startProcess()` gives the parts of one more process that uses it. */
export async function openCredentials() {
  const directory = mkdtempSync(join(tmpdir(), "headrace-credentials-"));
  const now = { seconds: 1_800_000_000, ms: 0 };
  const clock = { nowSeconds: () => now.seconds, monotonicMs: () => now.ms };
  const closing: (() => unknown)[] = [];
  const startProcess = async (options: Partial<AuthenticatorOptions> = {}) => {
    const db = await openDatabase(join(directory, "headrace.db"));
    const log = recordingLog();
    const { store: keys, state: keySwitch } = switchable<KeyStore>(new SqlKeyStore(db));
    const { store: signingStore, state: signingSwitch } = switchable(new SqlSigningKeyStore(db));
    const { store: audit, state: auditSwitch } = switchable(new SqlAuditLog(db));
    const shared = { clock, log, ...("clock" in options ? { clock: options.clock ?? clock } : {}) };
    const signingKeys = new SigningKeys({ store: signingStore, sealingKey, ...shared });
    const tokens = new AccessTokens({ signingKeys, audit, issuer: () => issuer, audience: () => audience, ...shared });
    const activity = new KeyActivity({ keys, log });
    const refusals = new RefusalLog({ audit, ...shared });
    const limitsOf = () => ({ requests: [], tokens: [], quotas: [] });
    const authenticator = new Authenticator({
      unknown: anyCredential,
      ...{ keys, pepper, mode: "development", tokens, activity, refusals, limitsOf },
      ...shared,
      ...options,
    });
    closing.push(async () => {
      authenticator.close();
      signingKeys.close();
      keySwitch.failure = auditSwitch.failure = undefined;
      keySwitch.held = auditSwitch.held = undefined;
      await activity.close();
      await refusals.close();
      await db.close();
    });
    const parts = { db, log, keys, keySwitch, signingStore, signingSwitch, audit, auditSwitch };
    return { ...parts, signingKeys, tokens, activity, refusals, authenticator };
  };
  const first = await startProcess();
  const accounts = new SqlAccountStore(first.db);
  const accountId = await accounts.ensureFirstAccount(now.seconds);
  let made = 0;
  return {
    ...first,
    now,
    clock,
    accounts,
    accountId,
    startProcess,
    /** Stores a key and gives its secret. */
    async addKey(environment: Environment = "live", more: Partial<ApiKeyRecord> = {}) {
      const secret = generateApiKey(environment);
      const id = `key_${++made}`;
      const own = { id, accountId, environment, digest: keyDigest(secret, pepper), ...displayParts(secret) };
      const record = keyRecordFor({ ...own, ...more });
      await first.keys.insertKey(record, testEvent(now.seconds));
      return { secret, record, id };
    },
    async close() {
      for (const close of closing.reverse()) await close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export function presented(parts: Partial<PresentedCredentials>): PresentedCredentials {
  const nobody = { authorization: null, apiKey: null, clientAddress: "203.0.113.9", requestId: "req_1" };
  return { ...nobody, whyNotLocal: () => undefined, ...parts };
}

/** Waits for what happens in the background, a second at most. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 1_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("did not happen within a second");
    await Bun.sleep(1);
  }
}
