// Connections to PostgreSQL that outlive its restarts, and that no request waits for without end.

import { SQL } from "bun";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { type IndexedItem, IndexedSet, noIndex } from "../../base/indexed-set.ts";
import { isLostConnection, isStaleStatement, postgresCode } from "./postgres-errors.ts";
import { WriteTurns } from "./write-turns.ts";

/** Connections of one process for all but lookups of credentials. */
const connections = 8;
/** Connections for what tells whether a credential holds: reports that are slow must neither keep keys out, nor a revocation from being seen. */
const lookupConnections = 2;
export const connectionsOfProcess = connections + lookupConnections;
/** How many of a transaction, about, read what a newer version may have added to. */
const statementsOfWork = 4;
/** Passes before another try, for the event loop to hear of other connections that broke. */
const pauseMs = 10;

/** Each but the first two is kept by the server. */
export interface PoolBounds {
  /** What even the server's own bounds did not end by then is not answered any more. */
  readMs: number;
  transactionMs: number;
  /** Queries of requests are made of pieces that take milliseconds. */
  statementMs: number;
  /** Shorter than a statement may take, and longer than somebody who hangs in a transaction can hold a lock. */
  lockMs: number;
  /** A process that hangs in a transaction holds up the others for so long. */
  idleInTransactionMs: number;
}

const defaultBounds: PoolBounds = {
  readMs: 6_000,
  transactionMs: 8_000,
  statementMs: 5_000,
  lockMs: 4_000,
  idleInTransactionMs: 3_000,
};
/** A bound is kept to a twelfth of the shortest. */
const looksPerBound = 12;
/** Nobody waits for a server that went silent longer than a sixth of the bound, until it answers something. */
const silentPart = 6;

function connect(url: string, max: number, { statementMs, lockMs, idleInTransactionMs }: PoolBounds): SQL {
  return new SQL(url, {
    max,
    database: databaseOf(url),
    // All three are in seconds.
    connectionTimeout: 3,
    // They end before a firewall forgets them, and so that all move to a server that took over in the end.
    idleTimeout: 240,
    maxLifetime: 1_800,
    connection: {
      application_name: "headrace",
      statement_timeout: statementMs,
      lock_timeout: lockMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
      // What `writing` promises rests on it: after the lock, each statement sees what was committed before.
      default_transaction_isolation: "read committed",
      client_encoding: "UTF8",
      // To compile a query takes longer than any of ours should.
      jit: "off",
    },
  });
}

/** Named beside the URL: Bun would let PGDATABASE of the environment come before what is in it. */
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
 * The same as `new SQL(url)`, but:
 * - a read outside of a transaction, and the BEGIN of one, are tried again where the connection was lost, as often as
 *   there are connections: after a restart of the server each pooled one fails once. Nothing else is ever repeated, as it
 *   may have been done;
 * - what the server does not answer in time fails; if it answers nothing at all any more, all connections are given up.
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

/** The turns of those who write, where the database is such a pool. */
export function turnsOf(db: SQL): WriteTurns | undefined {
  return Reflect.get(db, turnsOfPool) as WriteTurns | undefined;
}

/** The same database by connections that nothing else occupies, for short reads on which credentials hang. */
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
  #lookedMs = exactMs();
  #isSilent = false;

  constructor(url: string, max: number, bounds: PoolBounds) {
    this.#url = url;
    this.#max = max;
    this.#bounds = bounds;
    this.#sql = connect(url, max, bounds);
    this.#pollEveryMs = bounds.readMs / looksPerBound;
    this.#timer = setInterval(() => this.#look(), this.#pollEveryMs);
    this.#timer.unref();
  }

  get sql(): SQL {
    return this.#sql;
  }

  /** Lazy, as Bun's own are: it may also become a part of another query, and is never run then. */
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
   * Each connection has prepared it, and a transaction several: one after the other is prepared anew. What could not be run
   * was not done.
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
        // Whoever waited for it was told that it failed.
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
        // A transaction with a statement that could not be run was undone, all of it.
        if (!(isLostConnection(error) ? mayRepeat : this.#isStale(error, tries))) throw error;
      }
      await Bun.sleep(pauseMs);
    }
  }

  /** Those that run fail. */
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
    // Also where nobody waits for it any more.
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

  #look(): void {
    const nowMs = exactMs();
    // While this process itself stood still, nobody was late.
    const stoodStillMs = Math.max(0, nowMs - this.#lookedMs - this.#pollEveryMs);
    this.#lookedMs = nowMs;
    this.#answeredMs += stoodStillMs;
    for (const operation of this.#operations) operation.startedMs += stoodStillMs;
    const { readMs } = this.#bounds;
    const maxMs = this.#isSilent ? readMs / silentPart : Number.POSITIVE_INFINITY;
    const late = [...this.#operations].filter(({ startedMs, boundMs }) => nowMs - startedMs > Math.min(boundMs, maxMs));
    for (const { giveUp } of late) giveUp();
    if (late.length > 0 && nowMs - this.#answeredMs > readMs) this.#renew();
  }

  /** Connections to a server that is silent would stay until TCP gives them up, which takes a quarter of an hour. */
  #renew(): void {
    const old = this.#sql;
    this.#sql = connect(this.#url, this.#max, this.#bounds);
    this.#answeredMs = exactMs();
    this.#isSilent = true;
    // The old connections are given up, whatever their server says.
    void old.close({ timeout: 0 }).catch(() => {});
  }
}

function noAnswer(): GatewayError {
  return new GatewayError("service_unavailable", "The database cannot be used at the moment. Retry in 1 s.", {
    detail: "database: no answer in time",
    retryAfterSeconds: 1,
  });
}
