// Webhooks in the database, with their secrets sealed; every change with its row of the audit log.
import type { AuditEvent } from "../../../domain/audit.ts";
import {
  maxWebhooks,
  type SecuredWebhook,
  type WebhookChanges,
  type WebhookOwner,
  type WebhookSecret,
  type WebhookStore,
} from "../../../domain/notifications/webhook.ts";
import type { Database } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { insertAuditEvent } from "../audit-log.ts";
import { changeCredentials } from "../credential-change.ts";
import { webhooks } from "./notification-rows.ts";

/** `added` means that no cache has to drop anything: caches of credentials do not contain webhooks. */
const notCached = "added";

export class SqlWebhookStore implements WebhookStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  list(owner: WebhookOwner): Promise<SecuredWebhook[]> {
    return available(webhooks.all(ofOwner(this.#db, owner)));
  }

  find(id: string): Promise<SecuredWebhook | undefined> {
    return available(read(this.#db, id));
  }

  insert(webhook: SecuredWebhook, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const there = await webhooks.all(ofOwner(tx, webhook));
      if (there.length >= maxWebhooks) return { result: false, changed: false };
      await tx`INSERT INTO webhooks ${tx(webhooks.row(webhook))}`;
      return { result: true, changed: notCached };
    });
  }

  update(id: string, changes: WebhookChanges, event: AuditEvent): Promise<SecuredWebhook | undefined> {
    return this.#change(id, event, (webhook) => ({
      ...webhook,
      ...changes,
      // When a person enables or disables the webhook, the reason of an automatic change is cleared.
      ...(changes.isEnabled === undefined ? {} : { disabledReason: null }),
    }));
  }

  rotateSecret(id: string, secret: WebhookSecret, oldEndAt: number, event: AuditEvent) {
    return this.#change(id, event, (webhook) => {
      const last = webhook.secrets.at(-1);
      const kept = last && oldEndAt > event.at ? [{ ...last, expiresAt: oldEndAt }] : [];
      return { ...webhook, secrets: [...kept, secret] };
    });
  }

  delete(id: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const deleted: unknown[] = await tx`DELETE FROM webhooks WHERE id = ${id} RETURNING id`;
      if (deleted.length === 0) return { result: false, changed: false };
      await tx`DELETE FROM notice_deliveries WHERE target = ${id}`;
      return { result: true, changed: notCached };
    });
  }

  async disable(id: string, event: AuditEvent): Promise<void> {
    await written(this.#db, async (tx) => {
      const disabled: unknown[] = await tx`
        UPDATE webhooks SET is_enabled = 0, disabled_reason = 'gone' WHERE id = ${id} AND is_enabled = 1 RETURNING id`;
      if (disabled.length === 0) return;
      await tx`
        UPDATE notice_deliveries SET state = 'failed', ended_at = ${event.at}
        WHERE target = ${id} AND state = 'pending'`;
      await insertAuditEvent(tx, event);
    });
  }

  #change(id: string, event: AuditEvent, next: (webhook: SecuredWebhook) => SecuredWebhook) {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await read(tx, id);
      if (!current) return { result: undefined, changed: false };
      const changed = next(current);
      const { id: _, created_at: __, ...row } = webhooks.row(changed);
      await tx`UPDATE webhooks SET ${tx(row)} WHERE id = ${id}`;
      return { result: changed, changed: notCached };
    });
  }
}

function read(db: Database, id: string): Promise<SecuredWebhook | undefined> {
  return webhooks.first(db`SELECT * FROM webhooks WHERE id = ${id}`);
}

function ofOwner(db: Database, { accountId, environment }: WebhookOwner) {
  return accountId === null
    ? db`SELECT * FROM webhooks WHERE account_id IS NULL ORDER BY id`
    : db`SELECT * FROM webhooks WHERE account_id = ${accountId} AND environment = ${environment} ORDER BY id`;
}
