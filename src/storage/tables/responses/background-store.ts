// Background responses in the database: progress, end and cancellation.
import type {
  AbandonedResponse,
  BackgroundStore,
  EventBatch,
  ResponseOwner,
  ResponseRow,
  ResponseStatus,
  RunState,
  StoredItem,
} from "../../../domain/models/stored-response.ts";
import type { SealFor } from "../../../domain/seal.ts";
import { adding, type Database, writing } from "../../sql/database.ts";
import { placesWithin, putIntoConversation } from "./conversation-items.ts";
import { type ContentColumns, ResponseContent } from "./response-content.ts";
import { addItems } from "./response-items.ts";
import { available, outputOf, sealPurposes, storedResponses, visible } from "./response-rows.ts";

/** Seconds for which events are kept after the end of their response. */
const eventSeconds = 600;
/** Batches of events in one query. */
const batchesAtOnce = 1_000;

interface RunUpdate {
  status: ResponseStatus;
  response?: StoredItem;
  events?: EventBatch;
}

interface RunEnd extends RunUpdate {
  response: StoredItem;
}

interface EventRow {
  first_number: number | string;
  events: string;
}

export class SqlBackgroundStore implements BackgroundStore {
  readonly #db: Database;
  readonly #content: ResponseContent;

  constructor(db: Database, sealFor: SealFor) {
    this.#db = db;
    this.#content = new ResponseContent(sealFor);
  }

  progress(id: string, { status, response, events }: RunUpdate, nowSeconds: number): Promise<RunState> {
    const content = response ? this.#content.responseColumns(id, response) : {};
    const columns = { ...content, status, seen_at: nowSeconds };
    return available(
      adding(this.#db, async (tx) => {
        const [row]: StateRow[] = await tx`
          UPDATE stored_responses AS c SET ${tx(columns)} WHERE id = ${id} AND ${this.#goesOn(nowSeconds)}
          RETURNING status, cancel_requested_at`;
        if (row && events) await this.#addEvents(tx, id, events);
        if (row) return stateOf(row);
        return await readState(tx, id, nowSeconds);
      }),
    );
  }

  end(id: string, { status, response, events }: RunEnd, nowSeconds: number): Promise<boolean> {
    const columns = {
      ...this.#content.responseColumns(id, response),
      ...{ status, seen_at: null, events_until: nowSeconds + eventSeconds },
    };
    return available(
      adding(this.#db, async (tx) => {
        const [row]: ContentColumns[] = await tx`
          UPDATE stored_responses AS c SET ${tx(columns)} WHERE id = ${id} AND ${this.#goesOn(nowSeconds)}
          RETURNING ${this.#db.unsafe(storedResponses.list)}, input, response`;
        if (!row) return false;
        if (events) await this.#addEvents(tx, id, events);
        const stored = this.#content.record(row);
        if (!stored) return true;
        await addItems(tx, stored, outputOf(response));
        await putIntoConversation(tx, this.#content, stored, nowSeconds);
        return true;
      }),
    );
  }

  async requestCancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<ResponseRow | undefined> {
    const db = this.#db;
    const goesOn = () => db`
      id = ${id} AND ${visible(db, owner, nowSeconds)} AND ${this.#goesOn(nowSeconds)} AND cancel_requested_at IS NULL`;
    const [running] = await available(db`SELECT 1 FROM stored_responses AS c WHERE ${goesOn()}`);
    if (running) {
      await available(
        writing(
          db,
          async (tx) =>
            await tx`UPDATE stored_responses AS c SET cancel_requested_at = ${nowSeconds} WHERE ${goesOn()}`,
        ),
      );
    }
    return await available(
      storedResponses.first(db`
        SELECT ${db.unsafe(storedResponses.list)} FROM stored_responses AS c
        WHERE id = ${id} AND ${visible(db, owner, nowSeconds)}`),
    );
  }

  state(id: string, nowSeconds: number): Promise<RunState> {
    return available(readState(this.#db, id, nowSeconds));
  }

  lastEvent(id: string): Promise<number> {
    return available(readLastEvent(this.#db, id));
  }

  events(id: string, after: number, maxSize: number): Promise<readonly EventBatch[]> {
    return available(this.#events(id, after, maxSize));
  }

  async abandoned(seenBefore: number, nowSeconds: number, limit: number): Promise<readonly AbandonedResponse[]> {
    const rows: { id: string; seen_at: number | string }[] = await available(this.#db`
      SELECT id, seen_at FROM stored_responses AS c
      WHERE seen_at < ${seenBefore} AND ${this.#goesOn(nowSeconds)} ORDER BY seen_at, id LIMIT ${limit}`);
    return rows.map((row) => ({ id: row.id, seenAt: Number(row.seen_at) }));
  }

  endAbandoned(
    { id, seenAt }: AbandonedResponse,
    end: (response: StoredItem, number: number) => { response: StoredItem; event: string },
    nowSeconds: number,
  ): Promise<boolean> {
    const columns = { status: "failed", seen_at: null, events_until: nowSeconds + eventSeconds };
    return available(
      adding(this.#db, async (tx) => {
        // From here on, a process that still works on the response waits. Then it finds that the response has ended.
        const [row]: ContentColumns[] = await tx`
          UPDATE stored_responses AS c SET ${tx(columns)}
          WHERE id = ${id} AND seen_at = ${seenAt} AND ${this.#goesOn(nowSeconds)}
          RETURNING ${this.#db.unsafe(storedResponses.list)}, input, response`;
        const stored = row && this.#content.record(row);
        // Content that cannot be decrypted gets no final state.
        if (!stored) return row !== undefined;
        const number = (await readLastEvent(tx, id)) + 1;
        const { response, event } = end(stored.response, number);
        await tx`UPDATE stored_responses SET ${tx(this.#content.responseColumns(id, response))} WHERE id = ${id}`;
        await this.#addEvents(tx, id, { first: number, events: [event] });
        await addItems(tx, stored, outputOf(response));
        return true;
      }),
    );
  }

  async #events(id: string, after: number, maxSize: number): Promise<EventBatch[]> {
    const db = this.#db;
    const found: { place: number | string; size: number | string }[] = await db`
      SELECT first_number AS place, size FROM response_events
      WHERE response_id = ${id} AND last_number > ${after} ORDER BY first_number LIMIT ${batchesAtOnce}`;
    const within = placesWithin(found, maxSize);
    const [first, last] = [within[0], within.at(-1)];
    if (!(first && last)) return [];
    const rows: EventRow[] = await db`
      SELECT first_number, events FROM response_events
      WHERE response_id = ${id} AND first_number BETWEEN ${Number(first.place)} AND ${Number(last.place)}
      ORDER BY first_number`;
    return rows.flatMap((row) => {
      const number = Number(row.first_number);
      const events = this.#content.open<string[]>(sealPurposes.events(id, number), row.events);
      const seen = Math.max(0, after + 1 - number);
      return events ? [{ first: number + seen, events: events.slice(seen) }] : [];
    });
  }

  async #addEvents(tx: Database, id: string, { first, events }: EventBatch): Promise<void> {
    if (events.length === 0) return;
    const row = {
      response_id: id,
      first_number: first,
      last_number: first + events.length - 1,
      size: events.reduce((sum, event) => sum + event.length, 0),
      events: this.#content.seal(sealPurposes.events(id, first), events),
    };
    // A writer whose write was not confirmed retries with newer events. The first write may arrive after the retry.
    await tx`
      INSERT INTO response_events ${tx(row)} ON CONFLICT (response_id, first_number) DO UPDATE
      SET last_number = excluded.last_number, size = excluded.size, events = excluded.events
      WHERE response_events.last_number < excluded.last_number`;
  }

  #goesOn(nowSeconds: number) {
    return this.#db`c.status IN ('queued', 'in_progress') AND c.deleted_at IS NULL AND c.expires_at > ${nowSeconds}`;
  }
}

interface StateRow {
  status: ResponseStatus;
  cancel_requested_at: number | string | null;
}

async function readState(db: Database, id: string, nowSeconds: number): Promise<RunState> {
  const [row]: StateRow[] = await db`
    SELECT status, cancel_requested_at FROM stored_responses
    WHERE id = ${id} AND deleted_at IS NULL AND expires_at > ${nowSeconds}`;
  return row && stateOf(row);
}

async function readLastEvent(db: Database, id: string): Promise<number> {
  const [row]: { last: number | string | null }[] = await db`
    SELECT MAX(last_number) AS last FROM response_events WHERE response_id = ${id}`;
  return Number(row?.last ?? -1);
}

function stateOf(row: StateRow): { status: ResponseStatus; isCancelled: boolean } {
  return { status: row.status, isCancelled: row.cancel_requested_at !== null };
}
