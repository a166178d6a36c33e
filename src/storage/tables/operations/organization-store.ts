// The store of organizations, and of which accounts belong to them.
import type { Account, OrganizationStore } from "../../../domain/account.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import type { Organization, OrganizationChanges } from "../../../domain/organization.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { changeCredentials } from "../credential-change.ts";
import { accounts, organizations, readAccount, readOrganization } from "../credential-rows.ts";

type Page = { after: string | undefined; limit: number };

export class SqlOrganizationStore implements OrganizationStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  findOrganization(id: string): Promise<Organization | undefined> {
    return available(readOrganization(this.#db, id));
  }

  listOrganizations({ after, limit }: Page): Promise<Organization[]> {
    const rows = this.#db`SELECT * FROM organizations WHERE id > ${after ?? ""} ORDER BY id LIMIT ${limit}`;
    return available(organizations.all(rows));
  }

  async insertOrganization(organization: Organization, event: AuditEvent): Promise<void> {
    await changeCredentials(this.#db, event, async (tx) => {
      await tx`INSERT INTO organizations ${tx(organizations.row(organization))}`;
      return { result: undefined, changed: "added" };
    });
  }

  updateOrganization(id: string, changes: OrganizationChanges, event: AuditEvent): Promise<Organization | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readOrganization(tx, id);
      if (!current) return { result: undefined, changed: false };
      const updated = { ...current, ...changes };
      const { id: _, ...row } = organizations.row(updated);
      await tx`UPDATE organizations SET ${tx(row)} WHERE id = ${id}`;
      return { result: updated, changed: true };
    });
  }

  deleteOrganization(id: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const deleted: unknown[] = await tx`
        DELETE FROM organizations WHERE id = ${id}
          AND NOT EXISTS (SELECT 1 FROM accounts WHERE organization_id = ${id}) RETURNING id`;
      return { result: deleted.length > 0, changed: deleted.length > 0 };
    });
  }

  moveAccount(
    accountId: string,
    organizationId: string | null,
    event: AuditEvent,
  ): Promise<{ before: Organization | null } | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const account = await readAccount(tx, accountId);
      const isKnown = organizationId === null || (await readOrganization(tx, organizationId)) !== undefined;
      if (!account || !isKnown || (account.organizationId ?? null) === organizationId) {
        return { result: undefined, changed: false };
      }
      await tx`UPDATE accounts SET organization_id = ${organizationId} WHERE id = ${accountId}`;
      await tx`
        UPDATE organizations SET members_revision = members_revision + 1
        WHERE id = ${organizationId} OR id = ${account.organizationId ?? null}`;
      return { result: { before: account.organization ?? null }, changed: true };
    });
  }

  listAccountsOf(id: string, { after, limit }: Page): Promise<Account[]> {
    const rows = this.#db`
      SELECT * FROM accounts WHERE organization_id = ${id} AND id > ${after ?? ""} ORDER BY id LIMIT ${limit}`;
    return available(accounts.all(rows));
  }

  async countAccountsOf(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (ids.length === 0) return new Map();
    const rows: { id: string; n: number | string }[] = await available(this.#db`
      SELECT organization_id AS id, count(*) AS n FROM accounts
      WHERE organization_id IN ${this.#db([...ids])} GROUP BY organization_id`);
    return new Map(rows.map(({ id, n }) => [id, Number(n)]));
  }
}
