// Implements `headrace secret`: replaces the secret of a data directory, and reports what still depends on older ones.
import { existsSync } from "node:fs";
import { StartError } from "../base/errors.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { maxSecrets, newSecret, secretFile, writeSecretFile } from "../storage/files/secret-file.ts";
import { syncCommits } from "../storage/sql/durable-commits.ts";
import { type KeyUnderSecret, SqlSecretStore } from "../storage/tables/secret-store.ts";
import { type DatabaseLocation, withDatabaseOf } from "./data-directory.ts";
import { idOfSecret, secretInUse } from "./installation-secret.ts";
import { readSecrets } from "./operator-key.ts";
import { countUnderSecrets, forgetSealed, type SecretFigures } from "./secret-rotation.ts";

export interface SecretLocation extends DatabaseLocation {
  /** The secrets, each as 64 hex digits; undefined to read them from the data directory. */
  secretsHex: readonly string[] | undefined;
  nowSeconds: number;
}

export interface SecretStatus {
  /** Path of the secret file; undefined if HEADRACE_SECRET is used. */
  file: string | undefined;
  /** True if the newest secret is not in use yet, because no server has started with it. */
  isWaiting: boolean;
  figures: SecretFigures;
  /** Some of the keys that depend on older secrets, most recently used first. */
  keys: KeyUnderSecret[];
}

const maxKeysNamed = 20;

/** Returns the state of the secrets. Throws a StartError if the database uses none of them. */
export async function secretStatus(location: SecretLocation): Promise<SecretStatus> {
  const { dataDir, secretsHex, nowSeconds } = location;
  const secrets = readSecrets(dataDir, secretsHex);
  return withDatabaseOf(location, async (db) => {
    const inUse = await secretInUse(db, secrets, nowSeconds);
    if (!inUse) throw unknownSecret();
    // The secret in use first, as in a server that has not started with the newest one.
    const ring: KeyRing = [inUse, ...secrets.filter((secret) => secret !== inUse)];
    const store = new SqlSecretStore(db);
    const { first } = await store.state();
    const id = idOfSecret(inUse);
    return {
      file: secretsHex === undefined ? secretFile(dataDir) : undefined,
      isWaiting: inUse !== secrets[0],
      figures: await countUnderSecrets(db, ring, nowSeconds),
      keys: await store.keysUnderOthers(id, first ?? id, nowSeconds, maxKeysNamed),
    };
  });
}

/** Adds a new secret at the beginning of the secret file. A server uses it from its next start on. Returns the path. */
export async function rotateSecretFile(location: SecretLocation): Promise<string> {
  const { file, secrets } = ofFile(location);
  if (secrets.length >= maxSecrets) {
    throw new StartError(
      `${file} holds ${secrets.length} secrets already, which is the most. Use up the older ones first: \`headrace secret forget-old\`.`,
    );
  }
  await withDatabaseOf(location, async (db) => {
    if (!(await secretInUse(db, secrets, location.nowSeconds))) throw unknownSecret();
  });
  writeSecretFile(file, [Buffer.from(newSecret(), "hex"), ...secrets]);
  return file;
}

/**
 * Removes all secrets but the one in use from the file. Throws a StartError if something depends on the removed
 * secrets. With `forced`, keys that depend on them are refused, and data that needs them is deleted.
 */
export async function forgetOldSecrets(
  location: SecretLocation,
  { forced }: { forced: boolean },
): Promise<{ file: string | undefined; forgotten: number; figures: SecretFigures }> {
  const { file, isWaiting, figures } = await secretStatus(location);
  const secrets = readSecrets(location.dataDir, location.secretsHex);
  if (isWaiting) {
    throw new StartError(
      "No server has started with the newest secret yet: restart it first, so that it takes that over.",
    );
  }
  const remaining = figures.keysUnderOlder + figures.appSecretsUnderOlder + figures.sealedUnderOlder;
  if (remaining > 0 && !forced) {
    throw new StartError(
      `${figures.keysUnderOlder} keys, ${figures.appSecretsUnderOlder} secrets of apps and ${figures.sealedUnderOlder} sealed values are still under an older secret: they would be refused. \`headrace secret status\` names the keys; \`--force\` gives them up.`,
    );
  }
  if (location.secretsHex !== undefined && !forced) {
    throw new StartError(
      "HEADRACE_SECRET is set, so the secret is in no file. Nothing hangs on the older ones: leave the first one alone in the variable, and restart the servers.",
    );
  }
  if (forced) await withDatabaseOf(location, (db) => forgetSealed(db, [secrets[0]], location.nowSeconds));
  // Sync first: after a power cut, the database must not contain data that needs the removed secrets.
  await withDatabaseOf(location, syncCommits);
  if (file !== undefined && secrets.length > 1) writeSecretFile(file, [secrets[0]]);
  return { file, forgotten: file === undefined ? 0 : secrets.length - 1, figures };
}

function ofFile({ dataDir, secretsHex }: SecretLocation): { file: string; secrets: KeyRing } {
  const file = secretFile(dataDir);
  if (secretsHex === undefined && !existsSync(file)) {
    throw new StartError(
      `There is no file ${file}. Name the data directory of the server with --data-dir. If the servers have HEADRACE_SECRET instead of a file, set it here, too.`,
    );
  }
  if (secretsHex !== undefined) {
    throw new StartError(
      "The secret is in HEADRACE_SECRET and not in a file. Make one with `openssl rand -hex 32`, and set HEADRACE_SECRET to the old and the new one, separated by a comma, at all servers; then to the new and the old one: docs/operating.md, “Replacing the secret”.",
    );
  }
  return { file, secrets: readSecrets(dataDir, undefined) };
}

function unknownSecret(): StartError {
  return new StartError(
    "The secret is not the one that the database was written under. Set HEADRACE_SECRET as for the server, or unset it where the server uses the file `secret` in the data directory.",
  );
}
