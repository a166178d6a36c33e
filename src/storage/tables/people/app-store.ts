// Third-party apps in the database, with their secrets; what ends with a deleted app ends in the same transaction.
import type { Environment } from "../../../domain/api-key.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import type { App, AppChanges, AppSecret, AppStore, AppType, PublishedApp } from "../../../domain/people/app.ts";
import type { Scope } from "../../../domain/scope.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { changeCredentials } from "../credential-change.ts";
import { integer, words } from "../credential-rows.ts";

type Integer = number | string;

interface AppRow {
  id: string;
  account_id: string;
  person_id: string | null;
  name: string;
  homepage_url: string | null;
  type: string;
  redirect_uris: string;
  scopes: string;
  environment: string;
  require_pkce: number | boolean;
  created_by: string | null;
  created_at: Integer;
}

interface SecretRow {
  id: string;
  app_id: string;
  digest: string;
  last4: string;
  created_at: Integer;
  expires_at: Integer | null;
}

export class SqlAppStore implements AppStore {
  readonly #db: Database;
  readonly #secretId: string | null;

  /** `secretId`: of the installation's secret under which the digests of new ones are made. */
  constructor(db: Database, { secretId = null }: { secretId?: string | null } = {}) {
    this.#db = db;
    this.#secretId = secretId;
  }

  async findApp(id: string): Promise<PublishedApp | undefined> {
    const db = this.#db;
    const [row]: (AppRow & { publisher: string })[] = await available(db`
      SELECT apps.*, accounts.name AS publisher FROM apps JOIN accounts ON accounts.id = apps.account_id
      WHERE apps.id = ${id} AND accounts.status = 'active'`);
    if (!row) return undefined;
    const [app] = await withSecrets(db, [row]);
    return app && { ...app, publisher: row.publisher };
  }

  /** In the order of their ids, which begin with the time. */
  async listApps(
    { accountId, environment, personId }: { accountId: string; environment: Environment; personId?: string },
    { after, limit }: { after: string | undefined; limit: number },
  ): Promise<App[]> {
    const db = this.#db;
    const rows: AppRow[] = await available(db`
      SELECT * FROM apps WHERE account_id = ${accountId} AND environment = ${environment}
      ${personId === undefined ? db`` : db`AND person_id = ${personId}`}
      ${after === undefined ? db`` : db`AND id < ${after}`}
      ORDER BY id DESC LIMIT ${limit}`);
    return withSecrets(db, rows);
  }

  async insertApp(app: App, event: AuditEvent): Promise<void> {
    await changeCredentials(this.#db, event, async (tx) => {
      await tx`INSERT INTO apps ${tx(appToRow(app))}`;
      for (const secret of app.secrets) await tx`INSERT INTO app_secrets ${tx(this.#newRow(app.id, secret))}`;
      return { result: undefined, changed: "added" };
    });
  }

  updateApp(id: string, changes: AppChanges, event: AuditEvent): Promise<App | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readApp(tx, id);
      if (!current) return { result: undefined, changed: false };
      const updated = { ...current, ...changes };
      const row = appToRow(updated);
      await tx`
        UPDATE apps SET name = ${row.name}, homepage_url = ${row.homepage_url}, redirect_uris = ${row.redirect_uris},
          scopes = ${row.scopes}, require_pkce = ${row.require_pkce}
        WHERE id = ${id}`;
      return { result: updated, changed: true };
    });
  }

  /** Of the secrets before, only the newest goes on until `oldEndAt`: two work at a time, however fast rotations follow. */
  rotateSecret(id: string, secret: AppSecret, oldEndAt: number, event: AuditEvent): Promise<App | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readApp(tx, id);
      if (!current) return { result: undefined, changed: false };
      // The one that nothing ended yet; the order of their times would be wrong once a clock was set back.
      const last = current.secrets.find((one) => one.expiresAt === null);
      const kept = last && oldEndAt > event.at ? [{ ...last, expiresAt: oldEndAt }] : [];
      await tx`DELETE FROM app_secrets WHERE app_id = ${id} AND id <> ${kept[0]?.id ?? ""}`;
      for (const one of kept) await tx`UPDATE app_secrets SET expires_at = ${one.expiresAt} WHERE id = ${one.id}`;
      await tx`INSERT INTO app_secrets ${tx(this.#newRow(id, secret))}`;
      return { result: { ...current, secrets: [...kept, secret] }, changed: true };
    });
  }

  deleteApp(id: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readApp(tx, id);
      if (!current) return { result: false, changed: false };
      // One that is due to end keeps its time: a revocation is never moved back.
      await tx`
        UPDATE api_keys SET revoked = 1,
          revoked_at = CASE WHEN revoked_at < ${event.at} THEN revoked_at ELSE CAST(${event.at} AS BIGINT) END
        WHERE app_id = ${id} AND kind = 'grant' AND revoked = 0`;
      await tx`DELETE FROM authorization_codes WHERE app_id = ${id}`;
      await tx`DELETE FROM device_codes WHERE app_id = ${id}`;
      await tx`DELETE FROM app_secrets WHERE app_id = ${id}`;
      await tx`DELETE FROM apps WHERE id = ${id}`;
      return { result: true, changed: true };
    });
  }

  #newRow(appId: string, secret: AppSecret): SecretRow & { secret_id: string | null } {
    return { ...secretToRow(appId, secret), secret_id: this.#secretId };
  }
}

async function readApp(db: Database, id: string): Promise<App | undefined> {
  const rows: AppRow[] = await db`SELECT * FROM apps WHERE id = ${id}`;
  const [app] = await withSecrets(db, rows);
  return app;
}

/** In the order of the rows; the secrets of each oldest first. */
async function withSecrets(db: Database, rows: readonly AppRow[]): Promise<App[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const secrets: SecretRow[] = await available(
    db`SELECT * FROM app_secrets WHERE app_id IN ${db(ids)} ORDER BY created_at, id`,
  );
  const byApp = Map.groupBy(secrets, (secret) => secret.app_id);
  return rows.map((row) => appFromRow(row, byApp.get(row.id) ?? []));
}

function appFromRow(row: AppRow, secrets: readonly SecretRow[]): App {
  return {
    id: row.id,
    accountId: row.account_id,
    personId: row.person_id,
    name: row.name,
    homepageUrl: row.homepage_url,
    type: row.type as AppType,
    redirectUris: JSON.parse(row.redirect_uris) as string[],
    scopes: words(row.scopes) as Scope[],
    environment: row.environment as Environment,
    requirePkce: Boolean(row.require_pkce),
    secrets: secrets.map((secret) => ({
      id: secret.id,
      digest: secret.digest,
      last4: secret.last4,
      createdAt: Number(secret.created_at),
      expiresAt: integer(secret.expires_at),
    })),
    createdBy: row.created_by,
    createdAt: Number(row.created_at),
  };
}

function appToRow(app: App): AppRow {
  return {
    id: app.id,
    account_id: app.accountId,
    person_id: app.personId,
    name: app.name,
    homepage_url: app.homepageUrl,
    type: app.type,
    redirect_uris: JSON.stringify(app.redirectUris),
    scopes: app.scopes.join(" "),
    environment: app.environment,
    require_pkce: app.requirePkce ? 1 : 0,
    created_by: app.createdBy,
    created_at: app.createdAt,
  };
}

function secretToRow(appId: string, secret: AppSecret): SecretRow {
  return {
    id: secret.id,
    app_id: appId,
    digest: secret.digest,
    last4: secret.last4,
    created_at: secret.createdAt,
    expires_at: secret.expiresAt,
  };
}
