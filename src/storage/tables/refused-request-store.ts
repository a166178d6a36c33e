// Refused requests in the database, newest first.

import type { RefusedPage, RefusedRequest, RefusedRequestStore } from "../../domain/usage/refused-request.ts";
import type { RequestFilter, RequestOwner, RequestPosition } from "../../domain/usage/request-log.ts";
import type { Database } from "../sql/database.ts";
import { added, available } from "../sql/outage.ts";
import { flag, integer, table, text } from "../sql/table.ts";
import { credentialsOf } from "./credential-rows.ts";

const refusedRequests = table<RefusedRequest>({
  requestId: text,
  at: integer,
  accountId: text,
  keyId: text,
  appId: text,
  environment: text,
  operation: text,
  model: text,
  stream: flag,
  errorCode: text,
  message: text,
  durationMs: integer,
});

/** Maximum rows of one query, because SQLite blocks the thread that serves requests. */
const rowsAtOnce = 2_000;
/** Factor by which the rows of each further query of a page grow, if the first query read few. */
const growth = 8;
const queriesOfPage = 8;

export class SqlRefusedRequests implements RefusedRequestStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(refused: readonly RefusedRequest[]): Promise<void> {
    const rows = refused.map(refusedRequests.row);
    await added(this.#db, (tx) => tx`INSERT INTO refused_requests ${tx(rows)} ON CONFLICT (request_id) DO NOTHING`);
  }

  find(owner: RequestOwner | null, requestId: string): Promise<RefusedRequest | undefined> {
    const db = this.#db;
    if (!owner) {
      return available(refusedRequests.first(db`SELECT * FROM refused_requests WHERE request_id = ${requestId}`));
    }
    const { accountId, environment, appId, personId } = owner;
    const rows = db`
      SELECT * FROM refused_requests
      WHERE request_id = ${requestId} AND account_id = ${accountId} AND environment = ${environment}
        ${appId === undefined ? db`` : db`AND app_id = ${appId}`}
        ${personId === undefined ? db`` : db`AND key_id IN ${credentialsOf(db, { accountId, environment, personId })}`}`;
    return available(refusedRequests.first(rows));
  }

  async list(
    filter: RequestFilter,
    { after, limit }: { after: RequestPosition | undefined; limit: number },
  ): Promise<RefusedPage> {
    const refused: RefusedRequest[] = [];
    let until = after ? Math.min(filter.end, after.requestId === "" ? after.at : after.at + 1) : filter.end;
    let rows = filter.accountId === null ? limit + 1 : rowsAtOnce;
    for (let queries = 0; until > filter.start; queries++) {
      if (queries === queriesOfPage) return { refused, next: { at: until, requestId: "" } };
      if (queries > 0) await new Promise(setImmediate);
      const from = await this.#sliceStart(filter, until, rows);
      refused.push(...(await this.#read(filter, { from, until }, after, limit + 1 - refused.length)));
      const last = refused[limit - 1];
      if (refused.length > limit && last) {
        return { refused: refused.slice(0, limit), next: { at: last.at, requestId: last.requestId } };
      }
      until = from;
      rows = Math.min(rows * growth, rowsAtOnce);
    }
    return { refused, next: null };
  }

  /**
   * Returns the start of a range that ends at `until` and has about `rows` rows, but at least one whole second.
   */
  async #sliceStart({ accountId, environment, start }: RequestFilter, until: number, rows: number): Promise<number> {
    const [row]: { at: number | string }[] = await available(this.#db`
      SELECT at FROM refused_requests
      WHERE ${this.#of(accountId)} environment = ${environment} AND at >= ${start} AND at < ${until}
      ORDER BY at DESC LIMIT 1 OFFSET ${rows}`);
    return row === undefined ? start : Math.min(Math.max(start, Number(row.at)), until - 1);
  }

  #of(accountId: string | null) {
    return accountId === null ? this.#db`` : this.#db`account_id = ${accountId} AND`;
  }

  #read(
    { accountId, environment, appId, personId, keyId, model, stream }: RequestFilter,
    { from, until }: { from: number; until: number },
    after: RequestPosition | undefined,
    limit: number,
  ): Promise<RefusedRequest[]> {
    const db = this.#db;
    const rows = db`
      SELECT * FROM refused_requests
      WHERE ${this.#of(accountId)} environment = ${environment} AND at >= ${from} AND at < ${until}
        ${after === undefined ? db`` : db`AND (at < ${after.at} OR request_id < ${after.requestId})`}
        ${appId === undefined ? db`` : db`AND app_id = ${appId}`}
        ${personId === undefined ? db`` : db`AND key_id IN ${credentialsOf(db, { accountId, environment, personId })}`}
        ${keyId === undefined ? db`` : db`AND key_id = ${keyId}`}
        ${model === undefined ? db`` : db`AND model = ${model}`}
        ${stream === undefined ? db`` : db`AND stream = ${stream ? 1 : 0}`}
      ORDER BY at DESC, request_id DESC LIMIT ${limit}`;
    return available(refusedRequests.all(rows));
  }
}
