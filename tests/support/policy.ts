// What authenticates requests, over the stores and the clock that a test gives.
import type { Clock } from "../../src/base/clock.ts";
import type { Log, LogFields } from "../../src/base/log.ts";
import type { KeyStore } from "../../src/domain/principal.ts";
import { AccessTokens } from "../../src/policy/credentials/access-tokens.ts";
import { Authenticator } from "../../src/policy/credentials/authenticate.ts";
import { KeyActivity } from "../../src/policy/credentials/key-activity.ts";
import { SigningKeys } from "../../src/policy/credentials/signing-keys.ts";
import { RefusalLog } from "../../src/policy/records/refusal-log.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import type { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { SqlSigningKeyStore } from "../../src/storage/tables/signing-key-store.ts";
import { anyCredential } from "./unlimited.ts";

export interface PolicyParts {
  db: Database;
  keys: KeyStore;
  audit: SqlAuditLog;
  clock: Clock;
}

export async function openPolicy({ db, keys, audit, clock }: PolicyParts) {
  const lines: { event: string; fields: LogFields | undefined }[] = [];
  const write = (event: string, fields?: LogFields) => void lines.push({ event, fields });
  const log: Log = { info: write, warn: write, error: write };
  const sealingKey = new Uint8Array(32).fill(9);
  const signingKeys = new SigningKeys({ store: new SqlSigningKeyStore(db), sealingKey, clock, log });
  await signingKeys.start();
  const issuer = "https://headrace.example";
  const tokens = new AccessTokens({ signingKeys, audit, issuer: () => issuer, audience: () => `${issuer}/v1`, clock });
  const activity = new KeyActivity({ keys, log });
  const refusals = new RefusalLog({ audit, clock, log });
  const authenticator = new Authenticator({
    unknown: anyCredential,
    ...{ keys, pepper: new Uint8Array(32), mode: "development", tokens, activity, refusals, clock, log },
    limitsOf: () => ({ requests: [], tokens: [], quotas: [] }),
  });
  return {
    ...{ authenticator, tokens, log, lines },
    async close() {
      authenticator.close();
      signingKeys.close();
      await activity.close();
      await refusals.close();
    },
  };
}
