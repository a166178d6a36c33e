// Requests for more of a quota in the database, and the raises that are kept with the account.
import type { Account } from "../../../domain/account.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import {
  hasMaxRaises,
  type LimitDecision,
  type LimitRequest,
  type LimitRequestFilter,
  type LimitRequestStore,
  type ListedLimitRequest,
  maxOpenRequests,
  runningRaises,
} from "../../../domain/limits/limit-requests.ts";
import { quotaKey } from "../../../domain/limits/quota-rules.ts";
import type { Database } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { integer, json, table, text } from "../../sql/table.ts";
import { changeCredentials, type Outcome } from "../credential-change.ts";
import { accounts, readAccount } from "../credential-rows.ts";

const requests = table<LimitRequest>({
  id: text,
  accountId: text,
  environment: text,
  owner: text,
  ownerId: text,
  membershipId: text,
  personId: text,
  quota: json,
  amount: integer,
  reason: text,
  status: text,
  createdAt: integer,
  decision: {
    write: (decision) => decision && JSON.stringify(decision),
    read: (value) => (typeof value === "string" ? JSON.parse(value) : null),
  },
});
const listed = table<ListedLimitRequest>({ ...requests.columns, email: text, personName: text });

/** Seconds for which decided requests stay in the list. The audit log keeps the decisions. */
const keptSeconds = 90 * 86_400;

type Decided = Awaited<ReturnType<LimitRequestStore["decide"]>>;
type Opened = Awaited<ReturnType<LimitRequestStore["open"]>>;

export class SqlLimitRequestStore implements LimitRequestStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  open(request: LimitRequest, event: AuditEvent): Promise<Opened> {
    const { accountId, createdAt } = request;
    return changeCredentials(this.#db, event, async (tx): Promise<Outcome<Opened>> => {
      // Requests of running raises stay, because a raise is ended by the id of its request.
      const running = runningRaises((await readAccount(tx, accountId))?.raises, createdAt) ?? [];
      const kept = running.map(({ requestId }) => requestId);
      await tx`
        DELETE FROM limit_requests
        WHERE account_id = ${accountId} AND status <> 'open' AND created_at < ${createdAt - keptSeconds}
          ${kept.length === 0 ? tx`` : tx`AND id NOT IN ${tx(kept)}`}`;
      const [row]: { n: number | string }[] = await tx`
        SELECT count(*) AS n FROM limit_requests WHERE account_id = ${accountId} AND status = 'open'`;
      if (Number(row?.n) >= maxOpenRequests) return { result: "too_many", changed: false };
      const added: unknown[] = await tx`
        INSERT INTO limit_requests ${tx({ ...requests.row(request), limit_key: quotaKey(request.quota) })}
        ON CONFLICT DO NOTHING RETURNING id`;
      return added.length > 0 ? { result: "done", changed: "added" } : { result: "open_already", changed: false };
    });
  }

  async find(id: string): Promise<ListedLimitRequest | undefined> {
    const [found] = await this.#read({ id }, { after: undefined, limit: 1 });
    return found;
  }

  list(filter: LimitRequestFilter, page: { after: string | undefined; limit: number }): Promise<ListedLimitRequest[]> {
    return this.#read(filter, page);
  }

  decide(id: string, decision: LimitDecision, event: AuditEvent): Promise<Decided> {
    return changeCredentials(this.#db, event, async (tx): Promise<Outcome<Decided>> => {
      const account = await readAccount(tx, event.accountId ?? "");
      if (!account) return { result: "stale", changed: false };
      const running = runningRaises(account.raises, decision.at) ?? [];
      const isGranted = decision.amount !== null;
      if (isGranted && hasMaxRaises(running)) return { result: "too_many", changed: false };
      // Only a raise that still runs can be ended: an earlier decision stays as it was made.
      const isRunning = running.some(({ requestId }) => requestId === id);
      const request = await requests.first(tx`
        UPDATE limit_requests SET status = ${isGranted ? "granted" : "refused"}, decision = ${JSON.stringify(decision)}
        WHERE id = ${id} AND ${isRunning && !isGranted ? tx`status = 'granted'` : tx`status = 'open'`} RETURNING *`);
      if (!request) return { result: "stale", changed: false };
      const raises = raisesAfter(account, request, decision);
      await tx`UPDATE accounts SET ${tx(accounts.part({ ...account, raises }, "raises"))} WHERE id = ${account.id}`;
      return { result: "done", changed: true };
    });
  }

  #read(
    { id, accountId, personId, owner, status }: LimitRequestFilter & { id?: string },
    { after, limit }: { after: string | undefined; limit: number },
  ): Promise<ListedLimitRequest[]> {
    const db = this.#db;
    return available(
      listed.all(db`
        SELECT r.*, coalesce(p.email, '') AS email, coalesce(p.name, '') AS person_name
        FROM limit_requests r LEFT JOIN people p ON p.id = r.person_id
        WHERE 1 = 1
          ${id === undefined ? db`` : db`AND r.id = ${id}`}
          ${accountId === undefined ? db`` : db`AND r.account_id = ${accountId}`}
          ${personId === undefined ? db`` : db`AND r.person_id = ${personId}`}
          ${owner === undefined ? db`` : db`AND r.owner = ${owner}`}
          ${status === undefined ? db`` : db`AND r.status = ${status}`}
          ${after === undefined ? db`` : db`AND r.id < ${after}`}
        ORDER BY r.id DESC LIMIT ${limit}`),
    );
  }
}

/** Returns the account's raises after the decision, without those that have ended. */
function raisesAfter(account: Account, request: LimitRequest, { at, amount, until }: LimitDecision) {
  const others = (runningRaises(account.raises, at) ?? []).filter(({ requestId }) => requestId !== request.id);
  if (amount === null || until === null) return others;
  const { id: requestId, ownerId, environment, quota } = request;
  return [...others, { requestId, ownerId, environment, quota, amount, until }];
}
