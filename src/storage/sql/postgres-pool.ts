// Connections to PostgreSQL that survive its restarts, with bounded waits for requests.

import { SQL } from "bun";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { type IndexedItem, IndexedSet, noIndex } from "../../base/indexed-set.ts";
import { isLostConnection, isStaleStatement, postgresCode } from "./postgres-errors.ts";
import { WriteTurns } from "./write-turns.ts";

/** Connections of one process for everything except lookups of credentials. */
const connections = 8;
/** Connections for lookups of credentials: slow reports must delay neither keys nor revocations. */
const lookupConnections = 2;
export const connectionsOfProcess = connections + lookupConnections;
/** Approximate number of statements in a transaction that become stale when a newer version adds columns. */
const statementsOfWork = 4;
/** Milliseconds before a retry, in which the event loop learns of other broken connections. */
const pauseMs = 10;

/** Time limits. The server enforces all except the first two. */
export interface PoolBounds {
  /** Milliseconds after which a read fails if even the server's own limits have not ended it. */
  readMs: number;
  transactionMs: number;
  /** Maximum milliseconds of a statement. Requests only use statements that take a few milliseconds. */
  statementMs: number;
  /**
   * Maximum wait for a lock: shorter than a statement may take, and longer than a hanging transaction can hold a lock.
   */
  lockMs: number;
  /** A process that hangs in a transaction blocks the others for this long. */
  idleInTransactionMs: number;
}

const defaultBounds: PoolBounds = {
  readMs: 6_000,
  transactionMs: 8_000,
  statementMs: 5_000,
  lockMs: 4_000,
  idleInTransactionMs: 3_000,
};
/** Number of checks within the shortest time limit, so that each limit is exact to a twelfth of the shortest. */
const checksPerBound = 12;
/**
 * After a sixth of the bound without any answer, the server counts as silent and no request waits for it until it
 * answers.
 */
const silentPart = 6;

function connect(url: string, max: number, { statementMs, lockMs, idleInTransactionMs }: PoolBounds): SQL {
  return new SQL(url, {
    max,
    database: databaseOf(url),
    // The next three are in seconds.
    connectionTimeout: 3,
    // Connections end before a firewall drops them, and eventually all move to a new primary.
    idleTimeout: 240,
    maxLifetime: 1_800,
    connection: {
      application_name: "headrace",
      statement_timeout: statementMs,
      lock_timeout: lockMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
      // `writing` relies on this level: after the lock, each statement sees all earlier commits.
      default_transaction_isolation: "read committed",
      client_encoding: "UTF8",
      // JIT is off because compiling a query takes longer than any query here should.
      jit: "off",
    },
  });
}

/**
 * Returns the database that the URL names. Bun needs it as an option, because it would otherwise prefer PGDATABASE of
 * the environment.
 */
export function databaseOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1));
}

interface Operation extends IndexedItem {
  startedMs: number;
  boundMs: number;
  giveUp(): void;
}

type Query = PromiseLike<unknown>;
type Work = (tx: SQL) => unknown;

/**
 * Behaves like `new SQL(url)`, with two differences:
 * - A read outside of a transaction, and the BEGIN of one, are retried after a lost connection, as often as there are
 *   connections, because after a restart of the server each pooled connection fails once. Nothing else is repeated,
 *   because it may have been done.
 * - A statement that the server does not answer in time fails. If the server answers nothing at all any more, all
 *   connections are closed.
 */
export function openPool(url: string, bounds = defaultBounds): SQL {
  const lookups = new Pool(url, lookupConnections, bounds);
  const pool = new Pool(url, connections, bounds);
  const close = async () => {
    await Promise.all([pool.close(), lookups.close()]);
  };
  return asDatabase(pool, { close, lookups: asDatabase(lookups, { close: () => lookups.close() }) });
}

interface PoolParts {
  close: () => Promise<void>;
  lookups?: SQL;
}

function asDatabase(pool: Pool, { close, lookups }: PoolParts): SQL {
  return new Proxy(pool.sql, {
    apply(_target, _self, args) {
      const isTemplate = Array.isArray(args[0]) && "raw" in args[0];
      return isTemplate ? pool.query(args) : Reflect.apply(pool.sql, undefined, args);
    },
    get(_target, name) {
      if (name === "begin") return (...args: unknown[]) => pool.begin(args);
      if (name === "close" || name === "end") return close;
      if (name === turnsOfPool) return pool.turns;
      if (name === lookupsOfPool) return { lookups };
      const value: unknown = Reflect.get(pool.sql, name);
      return typeof value === "function" ? value.bind(pool.sql) : value;
    },
  });
}

const turnsOfPool = Symbol("turns");
const lookupsOfPool = Symbol("lookups");

/** Returns the queue of writers of a pool. */
export function turnsOf(db: SQL): WriteTurns | undefined {
  return Reflect.get(db, turnsOfPool) as WriteTurns | undefined;
}

/** Returns the database with its connections for short lookups of credentials. */
export function lookupsOf(db: SQL): SQL {
  const parts = Reflect.get(db, lookupsOfPool) as Pick<PoolParts, "lookups"> | undefined;
  return parts?.lookups ?? db;
}

class Pool {
  readonly turns = new WriteTurns();
  readonly #url: string;
  readonly #max: number;
  readonly #bounds: PoolBounds;
  readonly #pollEveryMs: number;
  readonly #operations = new IndexedSet<Operation>();
  readonly #timer: ReturnType<typeof setInterval>;
  #sql: SQL;
  #answeredMs = exactMs();
  #checkedMs = exactMs();
  #isSilent = false;

  constructor(url: string, max: number, bounds: PoolBounds) {
    this.#url = url;
    this.#max = max;
    this.#bounds = bounds;
    this.#sql = connect(url, max, bounds);
    this.#pollEveryMs = bounds.readMs / checksPerBound;
    this.#timer = setInterval(() => this.#check(), this.#pollEveryMs);
    this.#timer.unref();
  }

  get sql(): SQL {
    return this.#sql;
  }

  /**
   * Returns a query that is lazy like Bun's own: it may become a part of another query, and then never runs by itself.
   */
  query(args: unknown[]): Query {
    const query: Query = Reflect.apply(this.#sql, undefined, args);
    const first = Reflect.get(query, "then") as Query["then"];
    let running: Promise<unknown> | undefined;
    const run = () => {
      running ??= this.#bounded(this.#bounds.readMs, () =>
        this.#read(args, () => new Promise((...both) => first.apply(query, both))),
      );
      return running;
    };
    return Object.assign(query, {
      // biome-ignore lint/suspicious/noThenProperty: what is awaited is a query, which starts by it.
      then: (...both: Parameters<Query["then"]>) => run().then(...both),
      catch: (onFailure: (error: unknown) => unknown) => run().catch(onFailure),
      finally: (onEnd: () => void) => run().finally(onEnd),
    });
  }

  async #read(args: unknown[], first: () => Promise<unknown>): Promise<unknown> {
    const sql = this.#sql;
    const [[text = ""]] = args as [readonly string[]];
    for (let tries = 1; ; tries++) {
      try {
        return await (tries === 1 ? first() : Reflect.apply(this.#sql, undefined, args));
      } catch (error) {
        const mayRepeat = tries <= this.#max && this.#sql === sql && /^\s*(SELECT|WITH)\b/i.test(text);
        if (!(isLostConnection(error) ? mayRepeat : this.#isStale(error, tries))) throw error;
      }
      await Bun.sleep(pauseMs);
    }
  }

  /**
   * Reports whether to retry after an error of a stale prepared statement. Each connection may have stale statements,
   * and each of them is prepared again after its own error. A statement that could not run changed nothing.
   */
  #isStale(error: unknown, tries: number): boolean {
    return isStaleStatement(error) && tries <= statementsOfWork * this.#max;
  }

  begin(args: unknown[]): Promise<unknown> {
    const work = args.at(-1) as Work;
    return this.#bounded(this.#bounds.transactionMs, (isOver) => {
      let begun = false;
      const guarded: Work = async (tx) => {
        begun = true;
        const result = await work(tx);
        // The caller has already received an error.
        if (isOver()) throw noAnswer();
        return result;
      };
      return this.#begin([...args.slice(0, -1), guarded], () => begun);
    });
  }

  async #begin(args: unknown[], begun: () => boolean): Promise<unknown> {
    const sql = this.#sql;
    for (let tries = 1; ; tries++) {
      try {
        return await Reflect.apply(this.#sql.begin, this.#sql, args);
      } catch (error) {
        const mayRepeat = tries <= this.#max && !begun() && this.#sql === sql;
        // A failed statement undoes its whole transaction.
        if (!(isLostConnection(error) ? mayRepeat : this.#isStale(error, tries))) throw error;
      }
      await Bun.sleep(pauseMs);
    }
  }

  /** Closes the pool. Running queries fail. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sql.close({ timeout: 1 });
  }

  async #bounded(boundMs: number, work: (isOver: () => boolean) => Promise<unknown>): Promise<unknown> {
    const { promise: over, reject } = Promise.withResolvers<never>();
    let isOver = false;
    const giveUp = () => {
      isOver = true;
      this.#operations.delete(operation);
      reject(noAnswer());
    };
    const operation: Operation = { setIndex: noIndex, startedMs: exactMs(), boundMs, giveUp };
    this.#operations.add(operation);
    // The work goes on even if no caller waits for it any more.
    const done = work(() => isOver).then(
      (result) => {
        this.#answered();
        return result;
      },
      (error) => {
        if (/^[0-9A-Z]{5}$/.test(postgresCode(error) ?? "")) this.#answered();
        throw error;
      },
    );
    try {
      return await Promise.race([done, over]);
    } finally {
      this.#operations.delete(operation);
    }
  }

  #answered(): void {
    this.#answeredMs = exactMs();
    this.#isSilent = false;
  }

  #check(): void {
    const nowMs = exactMs();
    // Time during which this process itself stood still does not count as silence of the server.
    const stoodStillMs = Math.max(0, nowMs - this.#checkedMs - this.#pollEveryMs);
    this.#checkedMs = nowMs;
    this.#answeredMs += stoodStillMs;
    for (const operation of this.#operations) operation.startedMs += stoodStillMs;
    const { readMs } = this.#bounds;
    const maxMs = this.#isSilent ? readMs / silentPart : Number.POSITIVE_INFINITY;
    const late = [...this.#operations].filter(({ startedMs, boundMs }) => nowMs - startedMs > Math.min(boundMs, maxMs));
    for (const { giveUp } of late) giveUp();
    if (late.length > 0 && nowMs - this.#answeredMs > readMs) this.#renew();
  }

  /** Connections to a silent server would stay until TCP gives up, after a quarter of an hour. */
  #renew(): void {
    const old = this.#sql;
    this.#sql = connect(this.#url, this.#max, this.#bounds);
    this.#answeredMs = exactMs();
    this.#isSilent = true;
    // Closes the old connections without waiting for their server.
    void old.close({ timeout: 0 }).catch(() => {});
  }
}

function noAnswer(): GatewayError {
  return new GatewayError("service_unavailable", "The database cannot be used at the moment. Retry in 1 s.", {
    detail: "database: no answer in time",
    retryAfterSeconds: 1,
  });
}
