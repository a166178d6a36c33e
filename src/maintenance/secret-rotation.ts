// Encrypts data again with the secret in use, and counts what still depends on older secrets.
import type { Clock } from "../base/clock.ts";
import { StartError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { mcpServerContext } from "../domain/tools/server-rules.ts";
import { upstreamKeyContext } from "../inference/models/manage-upstreams.ts";
import { DigestRenewals } from "../policy/credentials/digest-renewals.ts";
import { seal, unseal } from "../policy/credentials/sealing.ts";
import { deriveKeys } from "../storage/files/secret-file.ts";
import type { Database } from "../storage/sql/database.ts";
import { type SealedValue, SqlSecretStore } from "../storage/tables/secret-store.ts";
import { checkOf, idOfSecret } from "./installation-secret.ts";

/** Counts of what depends on secrets other than the one in use. */
export interface SecretFigures {
  /** Number of accepted secrets; more than one while a secret is being replaced. */
  accepted: number;
  /**
   * Valid keys and app secrets that depend on older secrets: on accepted ones, and on ones that are no longer accepted.
   */
  keysUnderOlder: number;
  keysUnderDropped: number;
  appSecretsUnderOlder: number;
  appSecretsUnderDropped: number;
  /** Join tokens that were made with an older secret than the one in use. They expire within a week. */
  joinTokens: number;
  /**
   * Encrypted values: signing keys, API keys of upstreams, the key of stored responses, and credentials and users'
   * tokens for MCP servers.
   */
  sealedUnderOlder: number;
  sealedUnderDropped: number;
}

export interface SecretRotationOptions {
  db: Database;
  secrets: KeyRing;
  clock: Pick<Clock, "nowSeconds" | "monotonicMs">;
  log: Log;
}

/** Milliseconds for which counts are cached, because counting reads all keys. */
const countAgainMs = 60_000;

const sealPurposes = {
  signing_keys: "signing-key-seal-v1",
  upstreams: "upstream-seal-v1",
  installation: "content-key-seal-v1",
  tool_connections: "tool-connection-seal-v1",
  tool_clients: "tool-connection-seal-v1",
  tool_servers: "tool-server-seal-v1",
} as const;

export class SecretRotation {
  readonly renewals: DigestRenewals;
  readonly #options: SecretRotationOptions;
  readonly #store: SqlSecretStore;
  #figures: SecretFigures | undefined;
  #countedMs = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: SecretRotationOptions) {
    this.#options = options;
    const { db, secrets, log } = options;
    this.#store = new SqlSecretStore(db);
    const own = checkOf(secrets[0]);
    this.renewals = new DigestRenewals({ write: (renewals) => this.#store.renewDigests(renewals, own), log });
  }

  /**
   * Encrypts with the first secret all values that are encrypted with another accepted secret. Throws a StartError if
   * some values need a secret that was removed.
   */
  async reseal(): Promise<void> {
    const { secrets, clock, log } = this.#options;
    let resealed = 0;
    const lost: SealedValue[] = [];
    for (const value of await this.#store.sealedValues(clock.nowSeconds())) {
      const { text, isCurrent } = opened(value, secrets);
      if (text === undefined) lost.push(value);
      if (text === undefined || isCurrent) continue;
      await this.#store.replaceSealed(
        value,
        seal(text, deriveKeys(secrets, sealPurposes[value.table]), contextOf(value)),
      );
      resealed++;
    }
    if (resealed > 0) log.info("sealed_anew", { count: resealed });
    if (lost.length === 0) return;
    const { since } = await this.#store.state();
    // If the secret was never replaced, a value that it does not open is damaged. The code that reads the value reports
    // this error.
    if (since === undefined || secrets.length > 1) return;
    throw new StartError(
      `${nounOf(lost)} sealed under a secret that HEADRACE_SECRET, or the file \`secret\`, no longer has. Name that one as well, after the one in use, and start once: what is sealed is then sealed anew. If it is lost, \`headrace secret forget-old --force\` gives up what it sealed.`,
    );
  }

  /** Returns counts that are at most a minute old; undefined if counting has failed. Never rejects. */
  async figures(): Promise<SecretFigures | undefined> {
    if (this.#options.clock.monotonicMs() - this.#countedMs >= countAgainMs) await this.#count();
    return this.#figures;
  }

  /** Logs how many keys are refused because their secret is no longer accepted. Call once after a start. */
  async report(): Promise<void> {
    const figures = await this.figures();
    if (!figures || this.#isClosed) return;
    const { log } = this.#options;
    const { keysUnderOlder, appSecretsUnderOlder, keysUnderDropped, appSecretsUnderDropped, accepted } = figures;
    if (keysUnderDropped + appSecretsUnderDropped > 0) {
      log.warn("keys_under_dropped_secret", {
        keys: keysUnderDropped,
        app_secrets: appSecretsUnderDropped,
        detail:
          "They are refused: the secret that they were made under is no longer accepted. Name it again in HEADRACE_SECRET, after the one in use, or make new ones.",
      });
    }
    if (accepted > 1)
      log.info("secret_rotation", { keys_left: keysUnderOlder, app_secrets_left: appSecretsUnderOlder });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.renewals.close();
    await this.#counting;
  }

  #count(): Promise<void> {
    this.#counting ??= this.#read()
      .then((figures) => {
        this.#figures = figures;
        this.#countedMs = this.#options.clock.monotonicMs();
      })
      .catch((error) => this.#options.log.warn("secret_not_counted", { detail: String(error) }))
      .finally(() => {
        this.#counting = undefined;
      });
    return this.#counting;
  }

  #read(): Promise<SecretFigures> {
    const { db, secrets, clock } = this.#options;
    return countUnderSecrets(db, secrets, clock.nowSeconds());
  }
}

/** `secrets` begins with the one in use. */
export async function countUnderSecrets(db: Database, secrets: KeyRing, nowSeconds: number): Promise<SecretFigures> {
  const store = new SqlSecretStore(db);
  const { first, since } = await store.state();
  const figures: SecretFigures = {
    accepted: secrets.length,
    ...{ keysUnderOlder: 0, keysUnderDropped: 0, appSecretsUnderOlder: 0, appSecretsUnderDropped: 0 },
    ...{ joinTokens: 0, sealedUnderOlder: 0, sealedUnderDropped: 0 },
  };
  for (const value of await store.sealedValues(nowSeconds)) {
    const { text, isCurrent } = opened(value, secrets);
    if (text === undefined) figures.sealedUnderDropped++;
    else if (!isCurrent) figures.sealedUnderOlder++;
  }
  // If the secret was never replaced, nothing depends on another one.
  if (since === undefined && secrets.length === 1) return figures;
  const [current, ...older] = secrets.map(idOfSecret);
  const use = await store.use(first ?? current ?? "", nowSeconds);
  for (const [id, count] of use.keys) {
    if (id !== current) figures[older.includes(id) ? "keysUnderOlder" : "keysUnderDropped"] += count;
  }
  for (const [id, count] of use.appSecrets) {
    if (id !== current) figures[older.includes(id) ? "appSecretsUnderOlder" : "appSecretsUnderDropped"] += count;
  }
  figures.joinTokens = since === undefined ? 0 : await store.openJoinTokens(since, nowSeconds);
  return figures;
}

/**
 * Deletes encrypted values that no secret opens. Operators must then enter the credentials of upstreams and MCP servers
 * again, users must connect their accounts again, and stored responses are lost. Returns the number of deleted values.
 */
export async function forgetSealed(db: Database, secrets: KeyRing, nowSeconds: number): Promise<number> {
  const store = new SqlSecretStore(db);
  const lost = (await store.sealedValues(nowSeconds)).filter((value) => opened(value, secrets).text === undefined);
  for (const value of lost) {
    await store.replaceSealed(value, null);
  }
  return lost.length;
}

function opened(value: SealedValue, secrets: KeyRing): { text: string | undefined; isCurrent: boolean } {
  const keys = deriveKeys(secrets, sealPurposes[value.table]);
  for (const [i, key] of keys.entries()) {
    try {
      return { text: unseal(value.sealed, key, contextOf(value)), isCurrent: i === 0 };
    } catch {
      // Try the next secret.
    }
  }
  return { text: undefined, isCurrent: false };
}

function contextOf({ table, id, url }: SealedValue): string {
  if (url === null) return id;
  const server = { name: id, url };
  return table === "tool_servers" ? mcpServerContext(server) : upstreamKeyContext(server);
}

function nounOf(lost: readonly SealedValue[]): string {
  const count = (of: SealedValue["table"]) => lost.filter(({ table }) => table === of).length;
  const [upstreams, keys] = [count("upstreams"), count("signing_keys")];
  const parts = [
    ...(keys > 0 ? [`${keys} signing ${keys === 1 ? "key" : "keys"}`] : []),
    ...(count("installation") > 0 ? ["the key of stored responses"] : []),
    ...(count("tool_servers") > 0 ? ["credentials of MCP servers"] : []),
    ...(count("tool_connections") > 0 ? ["accounts that people connected at MCP servers"] : []),
    ...(count("tool_clients") > 0 ? ["clients that were registered at MCP servers"] : []),
    ...(upstreams > 0 ? [`the ${upstreams === 1 ? "key of 1 upstream" : `keys of ${upstreams} upstreams`}`] : []),
  ];
  const text = parts.join(" and ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)} ${lost.length === 1 ? "is" : "are"}`;
}
