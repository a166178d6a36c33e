// Accounts, and the tiers that were added at run time, in the database.
import type { Account, AccountChanges, AccountStore, Tier } from "../../domain/account.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import type { EndUserBudgets } from "../../domain/end-users.ts";
import { amounts, byName } from "../../domain/limits/amounts.ts";
import type { Database } from "../sql/database.ts";
import { available } from "../sql/outage.ts";
import { lookupsOf } from "../sql/postgres-pool.ts";
import { integer, jsonList, named, table, text, words } from "../sql/table.ts";
import { changeCredentials } from "./credential-change.ts";
import { accounts, readAccount } from "./credential-rows.ts";

const tiers = table<Tier>({
  name: text,
  ...byName(amounts, ({ wire }) => named(wire, integer)),
  environments: words,
  quotas: jsonList,
  priority: text,
});

export class SqlAccountStore implements AccountStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Returns the id of the installation's first account. One process creates it if it is missing. */
  async ensureFirstAccount(nowSeconds: number): Promise<string> {
    const existing = await firstAccountId(this.#db);
    if (existing !== undefined) return existing;
    const account: Account = {
      id: `acct_${Bun.randomUUIDv7()}`,
      name: "First account",
      tier: "enterprise",
      status: "active",
      overrides: {},
      storeChats: false,
      tools: null,
      createdAt: nowSeconds,
    };
    const event: AuditEvent = {
      id: `audit_${Bun.randomUUIDv7()}`,
      at: nowSeconds,
      action: "account.created",
      actor: { type: "system" },
      accountId: account.id,
      targetId: account.id,
      clientAddress: null,
      requestId: null,
      detail: { name: account.name, tier: account.tier },
    };
    return await changeCredentials(this.#db, event, async (tx) => {
      const first = await firstAccountId(tx);
      if (first !== undefined) return { result: first, changed: false };
      await tx`INSERT INTO accounts ${tx(accounts.row(account))}`;
      return { result: account.id, changed: true };
    });
  }

  findAccount(id: string): Promise<Account | undefined> {
    return available(readAccount(this.#db, id));
  }

  /** Lists accounts ordered by id, which begins with the time. */
  listAccounts({ after = "", limit, search }: Parameters<AccountStore["listAccounts"]>[0]): Promise<Account[]> {
    const db = this.#db;
    const pattern = `%${search?.replace(/[\\%_]/g, "\\$&")}%`;
    // SQLite lowers only ASCII letters.
    const isFound =
      search === undefined
        ? db``
        : db`AND (id = ${search} OR name LIKE ${pattern} ESCAPE '\\' OR lower(name) LIKE lower(${pattern}) ESCAPE '\\')`;
    const rows = db`SELECT * FROM accounts WHERE id > ${after} ${isFound} ORDER BY id LIMIT ${limit}`;
    return available(accounts.all(rows));
  }

  async insertAccount(account: Account, event: AuditEvent): Promise<void> {
    await changeCredentials(this.#db, event, async (tx) => {
      await tx`INSERT INTO accounts ${tx(accounts.row(account))}`;
      return { result: undefined, changed: true };
    });
  }

  updateAccount(id: string, changes: AccountChanges, event: AuditEvent): Promise<Account | undefined> {
    return changeCredentials(this.#db, event, async (tx) => {
      const current = await readAccount(tx, id);
      if (!current) return { result: undefined, changed: false };
      const overrides = Object.entries({ ...current.overrides, ...changes.overrides });
      const updated: Account = {
        ...current,
        ...changes,
        // An amount that is undefined is not stored: it is no override.
        overrides: Object.fromEntries(overrides.filter(([, amount]) => amount !== undefined)),
      };
      const row = accounts.part(updated, "name", "tier", "status", "overrides", "storeChats", "tools");
      await tx`UPDATE accounts SET ${tx(row)} WHERE id = ${id}`;
      return { result: updated, changed: true };
    });
  }

  async changeEndUsers(
    id: string,
    change: (current: EndUserBudgets) => EndUserBudgets | undefined,
    event: AuditEvent,
  ): Promise<void> {
    await changeCredentials(this.#db, event, async (tx) => {
      const current = await readAccount(tx, id);
      if (!current) return { result: undefined, changed: false };
      const endUsers = change(current.endUsers ?? { default: null, named: {} });
      if (Bun.deepEquals(endUsers, current.endUsers)) return { result: undefined, changed: false };
      await tx`UPDATE accounts SET ${tx(accounts.part({ ...current, endUsers }, "endUsers"))} WHERE id = ${id}`;
      return { result: undefined, changed: true };
    });
  }

  listTiers(): Promise<Tier[]> {
    return available(tiers.all(lookupsOf(this.#db)`SELECT * FROM tiers ORDER BY name`));
  }

  /** Adds or replaces the tier of this name. */
  async putTier(tier: Tier, event: AuditEvent): Promise<void> {
    const { name: _, ...figures } = tiers.row(tier);
    await changeCredentials(this.#db, event, async (tx) => {
      await tx`INSERT INTO tiers ${tx(tiers.row(tier))} ON CONFLICT (name) DO UPDATE SET ${tx(figures)}`;
      return { result: undefined, changed: true };
    });
  }

  deleteTier(name: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const deleted: unknown[] = await tx`DELETE FROM tiers WHERE name = ${name} RETURNING name`;
      return { result: deleted.length > 0, changed: deleted.length > 0 };
    });
  }

  async countAccountsOfTier(name: string): Promise<number> {
    const [row]: { n: number | string }[] = await available(
      this.#db`SELECT count(*) AS n FROM accounts WHERE tier = ${name}`,
    );
    return Number(row?.n);
  }
}

async function firstAccountId(db: Database): Promise<string | undefined> {
  const [first]: { id: string }[] = await available(db`SELECT id FROM accounts ORDER BY created_at, id LIMIT 1`);
  return first?.id;
}
