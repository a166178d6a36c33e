// Creates an operator's API key directly in a server's database, even while the server runs.
import { existsSync } from "node:fs";
import { StartError } from "../base/errors.ts";
import type { Account, AccountStore } from "../domain/account.ts";
import { type Environment, parseApiKey } from "../domain/api-key.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { createKeyAtConsole, toWire } from "../policy/manage/manage-keys.ts";
import { readCredentials } from "../storage/files/credentials-file.ts";
import { deriveKey, loadSecrets, secretFile } from "../storage/files/secret-file.ts";
import { SqlAccountStore } from "../storage/tables/account-store.ts";
import { SqlKeyStore } from "../storage/tables/key-store.ts";
import type { CreateKeyRequest, KeyWire } from "../wire/keys.ts";
import { type DatabaseLocation, withDatabaseOf } from "./data-directory.ts";
import { idOfSecret, secretInUse } from "./installation-secret.ts";

export interface OperatorKeyOptions extends DatabaseLocation {
  /** The secrets, each as 64 hex digits; undefined to read them from the data directory. */
  secretsHex: readonly string[] | undefined;
  /** Environment of the key; undefined for the environment of the server's last start. */
  environment: Environment | undefined;
  request: CreateKeyRequest;
  nowSeconds: number;
}

export interface OperatorKey {
  record: KeyWire;
  /** The new key. It is shown once and never stored. */
  key: string;
  account: Account;
}

/** Creates the key. Throws a StartError if that is impossible. */
export async function makeOperatorKey(options: OperatorKeyOptions): Promise<OperatorKey> {
  const { dataDir, request, nowSeconds } = options;
  return withDatabaseOf(options, async (db) => {
    // A server that has not restarted may still use an older secret, and would refuse a key made with the newest one.
    const secret = await secretInUse(db, readSecrets(dataDir, options.secretsHex), nowSeconds);
    if (!secret) throw otherSecret();
    const account = await firstActiveAccount(new SqlAccountStore(db));
    const { record, key, event } = createKeyAtConsole(
      request,
      { accountId: account.id, environment: options.environment ?? defaultEnvironment(dataDir) },
      { pepper: deriveKey(secret, "api-key-pepper-v1"), origin: { nowSeconds, clientAddress: null, requestId: null } },
    );
    await new SqlKeyStore(db, { secretId: idOfSecret(secret) }).insertKey(record, event);
    return { record: toWire(record, [], nowSeconds), key, account };
  });
}

/** Reads the secrets. Never creates one, because the server would refuse a key made with it. */
export function readSecrets(dataDir: string, secretsHex: readonly string[] | undefined): KeyRing {
  const file = secretFile(dataDir);
  if (secretsHex === undefined && !existsSync(file)) {
    throw new StartError(`There is no file ${file}: set HEADRACE_SECRET to what the server is started with.`);
  }
  try {
    return loadSecrets(dataDir, secretsHex);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`The file ${file} cannot be read: ${String(error)}`);
  }
}

function otherSecret(): StartError {
  return new StartError(
    "The secret is not the one that the server uses, so the server would refuse the key. Set HEADRACE_SECRET as for the server, or unset it where the server uses the file `secret` in the data directory.",
  );
}

/** Skip suspended accounts: their keys are refused, and an operator may have lost all other keys. */
async function firstActiveAccount(accounts: Pick<AccountStore, "listAccounts">): Promise<Account> {
  const limit = 100;
  let after: string | undefined;
  for (;;) {
    const page = await accounts.listAccounts({ after, limit });
    const active = page.find(({ status }) => status === "active");
    if (active) return active;
    if (page.length < limit) {
      throw new StartError("There is no active account yet: start the server once with `headrace serve`.");
    }
    after = page.at(-1)?.id;
  }
}

function defaultEnvironment(dataDir: string): Environment {
  const key = readCredentials(dataDir)?.api_key;
  return (key === undefined ? undefined : parseApiKey(key)) ?? "live";
}
