// Rows of numbers by the id of what is limited: very many keys have one, and most are seldom used.
import { IdRows } from "../../base/id-rows.ts";
import { SweepPace } from "../../base/swept-map.ts";
import { noRow } from "../../base/word-table.ts";

/** Rows of a page: a page stays where it is, so that one may lead there. */
const pageRows = 256;
/** Limits of keys are most of all. */
const commonPrefix = "key:key_";

/** Where a row is: its numbers are those of a page from `first` on, and the one of the row itself is the last. */
export interface RowPlace {
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
  /** The row that is visited next. */
  #cursor = 0;
  #lives = 0;

  /** `width`: numbers of a row, of which the last one belongs to the row itself. */
  constructor(width: number) {
    this.#width = width;
  }

  get size(): number {
    return this.#ids.size;
  }

  find(id: string): Row | undefined {
    const nth = this.#ids.find(id);
    return nth === noRow ? undefined : this.at(this.#placeOf(nth));
  }

  /** The row of an id that has none: all its numbers are 0. */
  add(id: string): Row {
    const nth = this.#ids.add(id);
    this.#pages[Math.floor(nth / pageRows)] ??= new Float64Array(pageRows * this.#width);
    const place = this.#placeOf(nth);
    const { page, first, last } = place;
    page.fill(0, first, last);
    page[last] = ++this.#lives;
    return this.at(place);
  }

  /** Forgets some that are over. Called once for each use, while the caller has none of them; `nowMs`: monotonic milliseconds. */
  used(nowMs: number): void {
    const { visits, isCrowded } = this.#pace.look(this.size, nowMs);
    for (let visit = 0; visit < visits; visit++) {
      if (this.#cursor >= this.#ids.end) {
        this.#cursor = 0;
        return;
      }
      const row = this.at(this.#placeOf(this.#cursor++));
      if (row.isKept && this.isOver(row, nowMs, isCrowded)) this.remove(row);
    }
  }

  /** One that is kept. */
  remove(row: Row): void {
    row.end();
    this.#ids.remove(row.nth);
  }

  protected abstract at(place: RowPlace): Row;

  /**
   * Whether what a row has may be forgotten, as it can be made anew without loss; what is in use all the time should stay
   * unless it is crowded.
   */
  protected abstract isOver(row: Row, nowMs: number, isCrowded: boolean): boolean;

  #placeOf(nth: number): RowPlace {
    const page = this.#pages[Math.floor(nth / pageRows)] as Float64Array;
    const first = (nth % pageRows) * this.#width;
    return { nth, page, first, last: first + this.#width - 1 };
  }
}

/** Leads to a row for as long as that is of the same id. */
export class KeptRow {
  readonly nth: number;
  readonly #page: Float64Array;
  readonly #first: number;
  readonly #last: number;
  /** A number that the row has had for no other id, nor at another time; 0 while it is free. */
  readonly #life: number;

  constructor({ nth, page, first, last }: RowPlace) {
    this.nth = nth;
    this.#page = page;
    this.#first = first;
    this.#last = last;
    this.#life = page[last] ?? 0;
  }

  /** False once it was forgotten. */
  get isKept(): boolean {
    return this.#life !== 0 && this.#page[this.#last] === this.#life;
  }

  /** It is free from now on. */
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
    const place = this.#first + nth;
    page[place] = (page[place] ?? 0) + value;
  }
}
