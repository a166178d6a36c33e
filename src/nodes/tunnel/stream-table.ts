// The open streams of a tunnel by their numbers: for each message the one that it belongs to.

/** An object that can be in a table, in one at a time. */
export interface Tabled<Stream> {
  readonly id: number;
  /** Kept by the table alone, undefined at first. */
  nextInTable: Stream | undefined;
}

const fewRows = 16;

/**
 * A map moves to new tables as streams come and go, and each old table leads to the next: once the collector has come to
 * regard one of them as old, all streams of those behind it stay until the next full collection. This one leads to
 * nothing that has left it. Numbers rise, so their last bits spread them over the rows.
 */
export class StreamTable<Stream extends Tabled<Stream>> implements Iterable<Stream> {
  #rows: (Stream | undefined)[] = new Array(fewRows).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    let stream = this.#rows[this.#rowOf(id)];
    while (stream !== undefined && stream.id !== id) stream = stream.nextInTable;
    return stream;
  }

  /** One whose number none has. */
  add(stream: Stream): void {
    if (this.#size === this.#rows.length) this.#grow();
    this.#put(stream);
    this.#size++;
  }

  /** Whether it was in. */
  delete(stream: Stream): boolean {
    const row = this.#rowOf(stream.id);
    let before: Stream | undefined;
    let found = this.#rows[row];
    while (found !== undefined && found !== stream) {
      before = found;
      found = found.nextInTable;
    }
    if (found === undefined) return false;
    if (before === undefined) this.#rows[row] = stream.nextInTable;
    else before.nextInTable = stream.nextInTable;
    stream.nextInTable = undefined;
    this.#size--;
    return true;
  }

  /** Those that are in at this moment, whatever is done to them meanwhile. */
  [Symbol.iterator](): ArrayIterator<Stream> {
    const all: Stream[] = [];
    for (let stream of this.#rows) for (; stream !== undefined; stream = stream.nextInTable) all.push(stream);
    return all.values();
  }

  #rowOf(id: number): number {
    return id & (this.#rows.length - 1);
  }

  #put(stream: Stream): void {
    const row = this.#rowOf(stream.id);
    stream.nextInTable = this.#rows[row];
    this.#rows[row] = stream;
  }

  #grow(): void {
    const all = [...this];
    this.#rows = new Array(2 * this.#rows.length).fill(undefined);
    for (const stream of all) this.#put(stream);
  }
}
