// Composes what makes an operator's key in a server's data directory, beside the server where one runs.
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
import { type DatabasePlace, withDatabaseOf } from "./data-directory.ts";
import { idOfSecret, secretInUse } from "./installation-secret.ts";

export interface OperatorKeyOptions extends DatabasePlace {
  /** Each as 64 hex digits; undefined: what is in the data directory. */
  secretsHex: readonly string[] | undefined;
  /** Undefined: that of the mode in which the server ran last. */
  environment: Environment | undefined;
  request: CreateKeyRequest;
  nowSeconds: number;
}

export interface OperatorKey {
  record: KeyWire;
  /** The secret: shown once, never stored. */
  key: string;
  account: Account;
}

/** Throws a StartError that says why there is no key. */
export async function makeOperatorKey(options: OperatorKeyOptions): Promise<OperatorKey> {
  const { dataDir, request, nowSeconds } = options;
  return withDatabaseOf(options, async (db) => {
    // The secret in use may not be the first of them, where a server has not taken that over yet: it would refuse the
    // key.
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

/** Never makes one: a key under a secret that the server does not have would be refused. */
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

/** The keys of a suspended account are refused, and this has to help when an operator has lost all others. */
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
