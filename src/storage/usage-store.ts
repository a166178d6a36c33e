// Usage records, written to the database in batches off the request path.
import type { Log } from "../domain/log.ts";
import type { UsageRecord, UsageStore } from "../domain/usage.ts";
import type { Database } from "./database.ts";

const flushAfterMs = 200;
const maxBatch = 500;
/** Beyond this many unwritten records the oldest are given up, so that an unwritable disk cannot exhaust memory. */
const maxPending = 100_000;

export class SqlUsageStore implements UsageStore {
  readonly #db: Database;
  readonly #log: Log;
  #pending: UsageRecord[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database, log: Log) {
    this.#db = db;
    this.#log = log;
  }

  record(usage: UsageRecord): void {
    this.#pending.push(usage);
    this.#timer ??= setTimeout(() => void this.flush(), flushAfterMs);
  }

  /** Writes what is pending; resolves when it is written or, after a failure that was logged, kept for the next try. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.slice(0, maxBatch);
      try {
        await this.#db`INSERT INTO usage_records ${this.#db(batch.map(toRow))} ON CONFLICT (request_id) DO NOTHING`;
        this.#pending.splice(0, batch.length);
      } catch (error) {
        const lost = Math.max(0, this.#pending.length - maxPending);
        this.#pending.splice(0, lost);
        this.#log.error("usage_write_failed", { detail: String(error), pending: this.#pending.length, lost });
        this.#timer ??= setTimeout(() => void this.flush(), flushAfterMs * 10);
        return;
      }
    }
  }
}

function toRow(usage: UsageRecord) {
  return {
    request_id: usage.requestId,
    at: usage.at,
    account_id: usage.accountId,
    key_id: usage.keyId,
    environment: usage.environment,
    operation: usage.operation,
    model: usage.model,
    outcome: usage.outcome,
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    estimated: usage.estimated ? 1 : 0,
    cost: usage.cost,
    duration_ms: Math.round(usage.durationMs),
  };
}
