// Lists single requests, newest first. The records of an account have no index, so roll-ups show which days and hours
// to read.
import type { Clock } from "../base/clock.ts";
import type {
  RequestFilter,
  RequestLog,
  RequestOwner,
  RequestPage,
  RequestPosition,
} from "../domain/usage/request-log.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import type { Database } from "../storage/sql/database.ts";
import { available } from "../storage/sql/outage.ts";
import { credentialsOf } from "../storage/tables/credential-rows.ts";
import { type RecordRow, recordOf } from "../storage/tables/record-row.ts";
import { tagInText } from "../storage/tables/tags-text.ts";

/** Maximum rows that one query scans, because SQLite blocks the thread that serves requests. */
const rowsAtOnce = 4_000;
/** Factor by which the rows of the next query of a page grow if a query found none. */
const growth = 8;
/** Factor by which more rows are scanned than wanted, because a few other rows lie between the wanted ones. */
const slack = 1.3;
/** Maximum milliseconds of queries for one page. The query that exceeds them still counts. */
const budgetMs = 40;
const hourSeconds = 3_600;
const daySeconds = 86_400;

/** A time span in Unix seconds. `from` is included, `until` is not. */
interface Span {
  from: number;
  until: number;
}

/** Runs queries one after another, with pauses for other work, and measures their time. */
class Reader {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #begun = false;
  #usedMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  get exhausted(): boolean {
    return this.#usedMs >= budgetMs;
  }

  async read<Found>(query: () => PromiseLike<Found>): Promise<Found> {
    if (this.#begun) await new Promise(setImmediate);
    this.#begun = true;
    const startedMs = this.#clock.monotonicMs();
    const found = await available(query());
    this.#usedMs += this.#clock.monotonicMs() - startedMs;
    return found;
  }
}

export class SqlRequestLog implements RequestLog {
  readonly #db: Database;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #catchUp: () => Promise<void>;

  /** `catchUp` brings the usage roll-ups up to date (`SpoolLedger.catchUp`). */
  constructor(db: Database, clock: Pick<Clock, "monotonicMs">, catchUp: () => Promise<void> = async () => {}) {
    this.#db = db;
    this.#clock = clock;
    this.#catchUp = catchUp;
  }

  async find(owner: RequestOwner | null, requestId: string): Promise<UsageRecord | undefined> {
    const db = this.#db;
    const [row]: RecordRow[] = await available(db`
      SELECT ${this.#columns()} FROM usage_records
      WHERE request_id = ${requestId} ${owner ? db`AND ${this.#ownedBy(owner)}` : db``}`);
    return row && recordOf(row);
  }

  /** Returns a page of records. Reads one more record to know whether another page follows. */
  async list(
    filter: RequestFilter,
    { after, limit }: { after: RequestPosition | undefined; limit: number },
  ): Promise<RequestPage> {
    await this.#catchUp();
    const reader = new Reader(this.#clock);
    const records: UsageRecord[] = [];
    const end = after ? Math.min(filter.end, after.requestId === "" ? after.at : after.at + 1) : filter.end;
    // If an index finds the matching requests, a page reads few others.
    let slice = filter.accountId === null ? scanned(limit + 1, isIndexed(filter) ? 1 : growth) : rowsAtOnce;
    for await (const stretch of this.#stretches(filter, { from: filter.start, until: end }, reader)) {
      let { until } = stretch;
      while (until > stretch.from) {
        const from = await this.#sliceStart(filter, { from: stretch.from, until }, slice, reader);
        const wanted = limit + 1 - records.length;
        const rows: RecordRow[] = await reader.read(() => this.#records(filter, { from, until }, after, wanted));
        for (const row of rows) records.push(recordOf(row));
        if (records.length > limit) {
          const page = records.slice(0, limit);
          return { records: page, next: positionOf(page.at(-1)) };
        }
        until = from;
        if (filter.accountId === null) {
          slice = scanned(limit + 1 - records.length, rows.length === 0 ? slice * growth : slice / rows.length);
        }
        if (reader.exhausted) return { records, next: before(until, filter) };
      }
      if (reader.exhausted) return { records, next: before(stretch.from, filter) };
    }
    return { records, next: null };
  }

  /**
   * Yields the days and hours that may have matching requests, newest first. An empty span reports how far the search
   * has come.
   */
  async *#stretches(filter: RequestFilter, within: Span, reader: Reader): AsyncGenerator<Span> {
    const { accountId, keyId, personId, appId } = filter;
    // If the filter names no owner, most requests match, and the indexes of the records find them.
    if (accountId === null && keyId === undefined && personId === undefined && appId === undefined) {
      yield within;
      return;
    }
    let { until } = within;
    while (until > within.from) {
      const from = await this.#rollupsStart(filter, { from: within.from, until }, reader);
      const range = { from, until };
      const days = await reader.read(() => this.#rollups("day", filter, range));
      for (const ofDay of spansOf(days, daySeconds, range)) {
        const hours = await reader.read(() => this.#rollups("hour", filter, ofDay));
        yield* spansOf(hours, hourSeconds, ofDay);
        yield { from: ofDay.from, until: ofDay.from };
      }
      yield { from, until: from };
      until = from;
    }
  }

  /** Returns the time from which to read daily roll-ups up to `until`; at least one whole day earlier. */
  async #rollupsStart(filter: RequestFilter, { from, until }: Span, reader: Reader): Promise<number> {
    const db = this.#db;
    const [row]: { start: number | string }[] = await reader.read(
      () => db`
        SELECT start FROM usage_rollups WHERE ${this.#whose(filter)} AND span = 'day' AND start < ${until}
        ORDER BY start DESC LIMIT 1 OFFSET ${rowsAtOnce}`,
    );
    return Math.max(from, Number(row?.start ?? 0));
  }

  /** Returns the time from which to read `rows` records up to `until`; at least one whole second earlier. */
  async #sliceStart(filter: RequestFilter, { from, until }: Span, rows: number, reader: Reader): Promise<number> {
    if (until - from <= 1) return from;
    const db = this.#db;
    let start = from;
    const time = this.#time(filter);
    for (const indexed of this.#indexed(filter)) {
      const [row]: { at: number | string }[] = await reader.read(
        () => db`
          SELECT ${time} AS at FROM usage_records WHERE ${indexed} ${time} >= ${start} AND ${time} < ${until}
          ORDER BY ${time} DESC LIMIT 1 OFFSET ${rows}`,
      );
      start = Math.max(start, Number(row?.at ?? 0));
    }
    return start;
  }

  /** Returns an SQL condition for each index that finds some of the matching records. */
  #indexed({ environment, upstream, outcome, model }: RequestFilter) {
    const db = this.#db;
    if (outcome !== undefined && outcome !== "completed") return [db`outcome <> 'completed' AND`];
    const ofModel = model === undefined ? db`` : db`environment = ${environment} AND model = ${model} AND`;
    if (upstream === undefined) return [ofModel];
    return [db`environment = ${environment} AND upstream = ${upstream} AND ${ofModel}`, db`trail IS NOT NULL AND`];
  }

  /**
   * Returns the SQL of the time as the index in use contains it. Each index has the expression `at + 0`, except
   * `usage_records_by_time`.
   */
  #time({ upstream, outcome, model }: RequestFilter) {
    const isNarrow = upstream !== undefined || model !== undefined || (outcome ?? "completed") !== "completed";
    return isNarrow ? this.#db`at + 0` : this.#db`at`;
  }

  #rollups(span: "hour" | "day", filter: RequestFilter, { from, until }: Span): PromiseLike<RollupSpan[]> {
    const db = this.#db;
    const { model, appId, outcome, tag } = filter;
    const seconds = span === "hour" ? hourSeconds : daySeconds;
    return db`
      SELECT start, min(first_at) AS first_at, max(last_at) AS last_at
      FROM ${db.unsafe(tag === undefined ? "usage_rollups" : "usage_tag_rollups")} WHERE ${this.#whose(filter)} AND span = ${span} AND start >= ${from - (from % seconds)} AND start < ${until}
        ${tag === undefined ? db`` : db`AND tag = ${tag}`}
        ${model === undefined ? db`` : db`AND model = ${model}`}
        ${appId === undefined ? db`` : db`AND app_id || '' = ${appId}`}
        ${outcome === "failed" ? db`AND errors > 0` : db``}
      GROUP BY start ORDER BY start DESC`;
  }

  /**
   * Returns the SQL condition for the filter's owner. For a key or person, the index of keys is used; otherwise, the
   * primary key. The other conditions are written so that no index serves them.
   */
  #whose({ accountId, environment, keyId, personId, appId }: RequestFilter) {
    const db = this.#db;
    if (keyId === undefined && personId === undefined && accountId !== null) {
      return db`account_id = ${accountId} AND environment = ${environment}`;
    }
    const ofAccount = accountId === null ? db`` : db`account_id || '' = ${accountId} AND`;
    const scope = db`${ofAccount} environment || '' = ${environment}`;
    if (keyId === undefined && personId === undefined) return db`app_id = ${appId ?? ""} AND app_id <> '' AND ${scope}`;
    if (personId === undefined) return db`key_id = ${keyId} AND ${scope}`;
    const credentials = credentialsOf(db, { accountId, environment, personId });
    if (keyId === undefined) return db`key_id IN ${credentials} AND ${scope}`;
    return db`key_id = ${keyId} AND ${scope} AND key_id || '' IN ${credentials}`;
  }

  #records(
    filter: RequestFilter,
    { from, until }: Span,
    after: RequestPosition | undefined,
    limit: number,
  ): PromiseLike<RecordRow[]> {
    const db = this.#db;
    const { keyId, model, outcome, stream, tag, upstream } = filter;
    const [first = db``, tried] = this.#indexed(filter);
    const time = this.#time(filter);
    const isTried = db`replace(trail, ${stepsOf(upstream ?? "")}, '') <> trail`;
    // Requests with a step at this model server in the attempt log, answered by another server or by none.
    const others = tried && db`${tried} coalesce(upstream, '') <> ${upstream ?? ""} AND ${isTried} AND`;
    const ofUpstream = upstream === undefined || tried ? db`` : db`AND (upstream = ${upstream} OR ${isTried})`;
    const matching = (isFirst: boolean) => db`
      SELECT ${this.#columns()} FROM usage_records
      WHERE ${isFirst ? first : others} ${time} >= ${from} AND ${time} < ${until} AND ${this.#ownedBy(filter)} ${ofUpstream}
        ${after === undefined ? db`` : db`AND (at < ${after.at} OR request_id || '' < ${after.requestId})`}
        ${keyId === undefined ? db`` : db`AND key_id = ${keyId}`}
        ${model === undefined ? db`` : db`AND model = ${model}`}
        ${tag === undefined ? db`` : db`AND replace(tags, ${tagInText(tag)}, '') <> tags`}
        ${outcome === undefined ? db`` : db`AND outcome = ${outcome}`}
        ${stream === undefined ? db`` : db`AND stream = ${stream ? 1 : 0}`}
      ORDER BY ${time} DESC, request_id DESC LIMIT ${limit}`;
    if (!tried) return matching(true);
    return db`
      SELECT * FROM (
        SELECT * FROM (${matching(true)}) AS answered UNION ALL SELECT * FROM (${matching(false)}) AS others
      ) AS found ORDER BY at DESC, request_id DESC LIMIT ${limit}`;
  }

  #ownedBy({ accountId, environment, appId, personId }: Pick<RequestFilter, "accountId" | keyof RequestOwner>) {
    const db = this.#db;
    const ofApp = appId === undefined ? db`` : db`AND app_id = ${appId}`;
    const credentials = personId !== undefined && credentialsOf(db, { accountId, environment, personId });
    const ofPerson = credentials ? db`AND key_id IN ${credentials}` : db``;
    const ofAccount = accountId === null ? db`` : db`account_id = ${accountId} AND`;
    return db`${ofAccount} environment = ${environment} ${ofApp} ${ofPerson}`;
  }

  #columns() {
    return this
      .#db`request_id, at, account_id, key_id, app_id, environment, operation, model, stream, outcome, error_code,
      prompt_tokens, completion_tokens, estimated, nano_usd, capped, upstream, duration_ms, first_token_ms, queue_ms, trail,
      cached_tokens, cache_write_tokens, reasoning_tokens, details, tags`;
  }
}

/** Returns how many rows to scan to find `wanted` matches, if one row of `perRow` matches. */
function scanned(wanted: number, perRow: number): number {
  return Math.min(Math.ceil(wanted * perRow * slack), rowsAtOnce);
}

/** Reports whether an index finds most of the matching records. */
function isIndexed({
  accountId,
  keyId,
  personId,
  appId,
  model,
  upstream,
  outcome,
  tag,
  stream,
}: RequestFilter): boolean {
  const others = [keyId, personId, appId, tag, stream, outcome === undefined ? undefined : (upstream ?? model)];
  return accountId === null && others.every((one) => one === undefined);
}

/** Returns the text with which a step at this model server begins in a stored attempt log (`trail-text.ts`). */
function stepsOf(upstream: string): string {
  return `${JSON.stringify([upstream]).slice(0, -1)},`;
}

interface RollupSpan {
  start: number | string;
  first_at: number | string;
  last_at: number | string;
}

/** Yields the spans of the roll-ups, cut to `within`. Roll-ups outside are left out. */
function* spansOf(rollups: readonly RollupSpan[], seconds: number, within: Span): Generator<Span> {
  for (const rollup of rollups) {
    const start = Number(rollup.start);
    const from = Math.max(start, Number(rollup.first_at), within.from);
    const until = Math.min(start + seconds, Number(rollup.last_at) + 1, within.until);
    if (from < until) yield { from, until };
  }
}

/** Returns the position in the list from which requests began before `at`; null if no request can match. */
function before(at: number, { start }: RequestFilter): RequestPosition | null {
  return at > start ? { at, requestId: "" } : null;
}

function positionOf(record: UsageRecord | undefined): RequestPosition | null {
  return record ? { at: record.at, requestId: record.requestId } : null;
}
