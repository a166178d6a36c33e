// Third-party apps in the database, with their secrets. Deleting an app ends its grants in the same transaction.
import type { Environment } from "../../../domain/api-key.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import type { App, AppChanges, AppSecret, AppStore, PublishedApp } from "../../../domain/people/app.ts";
import { outsideApp } from "../../../domain/people/outside-client.ts";
import { type Suspender, type SuspensionChange, suspenderAfter } from "../../../domain/principal.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { flag, integer, json, table, text, words } from "../../sql/table.ts";
import { changeCredentials } from "../credential-change.ts";
import { outsideClients } from "./outside-client-store.ts";

const apps = table<Omit<App, "secrets">>({
  id: text,
  accountId: text,
  personId: text,
  name: text,
  homepageUrl: text,
  type: text,
  redirectUris: json,
  scopes: words,
  tools: json,
  environment: text,
  requirePkce: flag,
  suspendedBy: text,
  createdBy: text,
  createdAt: integer,
});

const publishedApps = table<Omit<PublishedApp, "secrets" | "unverified">>({ ...apps.columns, publisher: text });

const secrets = table<AppSecret>({
  id: text,
  digest: text,
  last4: text,
  createdAt: integer,
  expiresAt: integer,
});

export class SqlAppStore implements AppStore {
  readonly #db: Database;
  readonly #secretId: string | null;
  readonly #environment: Environment;

  /**
   * `secretId` is the id of the installation's secret under which digests of new app secrets are made. `environment` is
   * that of clients that no account registered.
   */
  constructor(
    db: Database,
    { secretId = null, environment = "live" }: { secretId?: string | null; environment?: Environment } = {},
  ) {
    this.#db = db;
    this.#secretId = secretId;
    this.#environment = environment;
  }

  async findApp(id: string): Promise<PublishedApp | undefined> {
    const db = this.#db;
    const found = publishedApps.all(db`
      SELECT apps.*, accounts.name AS publisher FROM apps JOIN accounts ON accounts.id = apps.account_id
      WHERE apps.id = ${id} AND accounts.status = 'active'`);
    const [app] = await withSecrets(db, await available(found));
    if (app) return app;
    const outside = await available(outsideClients.first(db`SELECT * FROM outside_clients WHERE id = ${id}`));
    return outside && outsideApp(outside, this.#environment);
  }

  /** Lists apps ordered by id, which begins with the time. */
  async listApps(
    { accountId, environment, personId }: { accountId: string; environment: Environment; personId?: string },
    { after, limit }: { after: string | undefined; limit: number },
  ): Promise<App[]> {
    const db = this.#db;
    const found = apps.all(db`
      SELECT * FROM apps WHERE account_id = ${accountId} AND environment = ${environment}
      ${personId === undefined ? db`` : db`AND person_id = ${personId}`}
      ${after === undefined ? db`` : db`AND id < ${after}`}
      ORDER BY id DESC LIMIT ${limit}`);
    return withSecrets(db, await available(found));
  }

  async insertApp(app: App, event: AuditEvent): Promise<void> {
    await changeCredentials(this.#db, event, async (tx) => {
      await tx`INSERT INTO apps ${tx(apps.row(app))}`;
      for (const secret of app.secrets) await tx`INSERT INTO app_secrets ${tx(this.#newRow(app.id, secret))}`;
      return { result: undefined, changed: "added" };
    });
  }

  updateApp(id: string, changes: AppChanges, event: AuditEvent): Promise<App | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readApp(tx, id);
      if (!current) return { result: undefined, changed: false };
      const updated = { ...current, ...changes };
      const row = apps.part(updated, "name", "homepageUrl", "redirectUris", "scopes", "tools", "requirePkce");
      await tx`UPDATE apps SET ${tx(row)} WHERE id = ${id}`;
      return { result: updated, changed: true };
    });
  }

  /**
   * Only the newest earlier secret lasts until `oldEndAt`: at most two work at a time, however fast rotations follow.
   */
  rotateSecret(id: string, secret: AppSecret, oldEndAt: number, event: AuditEvent): Promise<App | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readApp(tx, id);
      if (!current) return { result: undefined, changed: false };
      // The newest secret is the one without an end. Times could be in the wrong order after a clock was set back.
      const last = current.secrets.find((one) => one.expiresAt === null);
      const kept = last && oldEndAt > event.at ? [{ ...last, expiresAt: oldEndAt }] : [];
      await tx`DELETE FROM app_secrets WHERE app_id = ${id} AND id <> ${kept[0]?.id ?? ""}`;
      for (const one of kept) await tx`UPDATE app_secrets SET expires_at = ${one.expiresAt} WHERE id = ${one.id}`;
      await tx`INSERT INTO app_secrets ${tx(this.#newRow(id, secret))}`;
      return { result: { ...current, secrets: [...kept, secret] }, changed: true };
    });
  }

  setSuspended(id: string, change: SuspensionChange, event: AuditEvent): Promise<Suspender | null | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const [app]: { suspended_by: Suspender | null }[] = await tx`
        SELECT suspended_by FROM apps WHERE id = ${id}
        UNION ALL SELECT suspended_by FROM outside_clients WHERE id = ${id}`;
      if (!app) return { result: undefined, changed: false };
      const suspendedBy = suspenderAfter(app.suspended_by, change);
      if (suspendedBy === app.suspended_by) return { result: suspendedBy, changed: false };
      await tx`UPDATE apps SET suspended_by = ${suspendedBy} WHERE id = ${id}`;
      await tx`UPDATE outside_clients SET suspended_by = ${suspendedBy} WHERE id = ${id}`;
      return { result: suspendedBy, changed: true };
    });
  }

  deleteApp(id: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readApp(tx, id);
      if (!current) return { result: false, changed: false };
      // A secret that is already scheduled to end keeps its time, because a revocation is never postponed.
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

  #newRow(appId: string, secret: AppSecret) {
    return { ...secrets.row(secret), app_id: appId, secret_id: this.#secretId };
  }
}

async function readApp(db: Database, id: string): Promise<App | undefined> {
  const found = await apps.all(db`SELECT * FROM apps WHERE id = ${id}`);
  const [app] = await withSecrets(db, found);
  return app;
}

/** Returns the apps in order, with the secrets of each oldest first. */
async function withSecrets<Found extends { id: string }>(db: Database, found: readonly Found[]) {
  if (found.length === 0) return [];
  const ids = found.map(({ id }) => id);
  const rows: { app_id: string }[] = await available(
    db`SELECT * FROM app_secrets WHERE app_id IN ${db(ids)} ORDER BY created_at, id`,
  );
  const byApp = Map.groupBy(rows, (row) => row.app_id);
  return found.map((app) => ({ ...app, secrets: (byApp.get(app.id) ?? []).map(secrets.record) }));
}
