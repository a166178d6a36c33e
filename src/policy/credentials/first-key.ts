// Creates the installation's first key of an environment.

import type { Clock } from "../../base/clock.ts";
import { displayParts, type Environment, generateApiKey } from "../../domain/api-key.ts";
import { type ApiKeyRecord, type KeyStore, newAndUnbounded } from "../../domain/principal.ts";
import { accountScopes } from "../../domain/scope.ts";
import { auditEvent } from "../records/audit.ts";
import { keyDigest } from "./key-digest.ts";

export interface FirstKey {
  record: ApiKeyRecord;
  /** The secret; undefined unless the key was created now. */
  key: string | undefined;
}

export interface FirstKeyOptions {
  accountId: string;
  environment: Environment;
  pepper: Uint8Array;
  clock: Clock;
  /** Stores the secret. Returns a function that removes it again. */
  keep(key: string): () => void;
}

/**
 * Ensures that an environment has a key with every scope that an account may have. `keep` receives the secret of a new
 * key. If the key exists, or another process was faster, returns the record without the secret.
 */
export async function ensureFirstKey(
  store: Pick<KeyStore, "firstKey" | "insertFirstKey">,
  options: FirstKeyOptions,
): Promise<FirstKey> {
  const existing = await store.firstKey(options.environment);
  if (existing) return { record: existing, key: undefined };
  const key = generateApiKey(options.environment);
  const id = `key_${Bun.randomUUIDv7()}`;
  const nowSeconds = options.clock.nowSeconds();
  const record: ApiKeyRecord = {
    id,
    kind: "key",
    personId: null,
    appId: null,
    role: null,
    accountId: options.accountId,
    name: "First key",
    environment: options.environment,
    digest: keyDigest(key, options.pepper),
    ...displayParts(key),
    scopes: accountScopes,
    createdBy: null,
    parentId: null,
    limitId: id,
    createdAt: nowSeconds,
    ...newAndUnbounded,
  };
  const event = auditEvent(
    "key.created",
    { type: "system" },
    { nowSeconds, clientAddress: null, requestId: null },
    {
      accountId: record.accountId,
      targetId: id,
      detail: { name: record.name, environment: record.environment, scopes: [...accountScopes] },
    },
  );
  // The secret is stored before the key is valid. After a crash in between, the next start creates another key, and
  // no key exists whose secret is lost.
  const forget = options.keep(key);
  const first = await store.insertFirstKey(record, event);
  if (first.id === id) return { record, key };
  forget();
  return { record: first, key: undefined };
}
