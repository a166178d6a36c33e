// Stores the numbers of each limit id in a row of an array, to save memory: very many keys have a limit, and most are
// rarely used.
import { IdRows } from "../../base/id-rows.ts";
import { SweepPace } from "../../base/swept-map.ts";
import { noRow } from "../../base/word-table.ts";

/** Number of rows in a page. Pages are never moved, so references to rows stay valid. */
const pageRows = 256;
/** The prefix of most limit ids, because most of them are ids of keys. */
const commonPrefix = "key:key_";

/** The place of a row: `page[first]` to `page[last]`. The last entry identifies the row's current owner. */
export interface RowLocation {
  readonly nth: number;
  readonly page: Float64Array;
  readonly first: number;
  readonly last: number;
}

export abstract class KeptRows<Row extends KeptRow> {
  readonly #width: number;
  readonly #ids = new IdRows(commonPrefix);
  readonly #pages: Float64Array[] = [];
  readonly #pace = new SweepPace();
  /** The next row to visit. */
  #cursor = 0;
  #lives = 0;

  /** `width` is the number of entries of a row, including the last one, which identifies the row's current owner. */
  constructor(width: number) {
    this.#width = width;
  }

  get size(): number {
    return this.#ids.size;
  }

  find(id: string): Row | undefined {
    const nth = this.#ids.find(id);
    return nth === noRow ? undefined : this.at(this.#locationOf(nth));
  }

  /** Adds a row of zeros for an id that has none. */
  add(id: string): Row {
    const nth = this.#ids.add(id);
    this.#pages[Math.floor(nth / pageRows)] ??= new Float64Array(pageRows * this.#width);
    const location = this.#locationOf(nth);
    const { page, first, last } = location;
    page.fill(0, first, last);
    page[last] = ++this.#lives;
    return this.at(location);
  }

  /**
   * Visits some rows and drops those that can be recreated without loss. Call this once for each use, while no row is
   * referenced. `nowMs` is monotonic.
   */
  used(nowMs: number): void {
    const { visits, isCrowded } = this.#pace.check(this.size, nowMs);
    for (let visit = 0; visit < visits; visit++) {
      if (this.#cursor >= this.#ids.end) {
        this.#cursor = 0;
        return;
      }
      const row = this.at(this.#locationOf(this.#cursor++));
      if (row.isKept && this.isOver(row, nowMs, isCrowded)) this.remove(row);
    }
  }

  /** Removes a row. */
  remove(row: Row): void {
    row.end();
    this.#ids.remove(row.nth);
  }

  protected abstract at(location: RowLocation): Row;

  /**
   * Reports whether a row can be dropped, because it can be recreated without loss. If memory is not crowded, rows in
   * frequent use should stay.
   */
  protected abstract isOver(row: Row, nowMs: number, isCrowded: boolean): boolean;

  #locationOf(nth: number): RowLocation {
    const page = this.#pages[Math.floor(nth / pageRows)] as Float64Array;
    const first = (nth % pageRows) * this.#width;
    return { nth, page, first, last: first + this.#width - 1 };
  }
}

/** A reference to a row, valid until the row is removed. */
export class KeptRow {
  readonly nth: number;
  readonly #page: Float64Array;
  readonly #first: number;
  readonly #last: number;
  /** Number that identifies the row's owner when this reference was made; 0 if the row was free. */
  readonly #life: number;

  constructor({ nth, page, first, last }: RowLocation) {
    this.nth = nth;
    this.#page = page;
    this.#first = first;
    this.#last = last;
    this.#life = page[last] ?? 0;
  }

  /** False once the row was removed. */
  get isKept(): boolean {
    return this.#life !== 0 && this.#page[this.#last] === this.#life;
  }

  /** Marks the row as free. */
  end(): void {
    this.#page[this.#last] = 0;
  }

  protected get(nth: number): number {
    return this.#page[this.#first + nth] ?? 0;
  }

  protected set(nth: number, value: number): void {
    this.#page[this.#first + nth] = value;
  }

  protected add(nth: number, value: number): void {
    const page = this.#page;
    const location = this.#first + nth;
    page[location] = (page[location] ?? 0) + value;
  }
}
