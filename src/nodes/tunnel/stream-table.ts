// The open streams of a tunnel by number, to find the stream of each message.

/** An object that can be in one table at a time. */
export interface Tabled<Stream> {
  readonly id: number;
  /** The next stream in the same row. Only the table writes this member; it is undefined at first. */
  nextInTable: Stream | undefined;
}

const fewRows = 16;

/**
 * A hash table of streams. A Map is not used: it moves to new tables as streams come and go, and each old table links
 * to the next. Once the collector treats one of them as old, all streams of the later ones stay until the next full
 * collection. This table has no link to a stream that has left. Numbers rise, so their last bits spread them over the
 * rows.
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

  /** Adds a stream whose number is unused. */
  add(stream: Stream): void {
    if (this.#size === this.#rows.length) this.#grow();
    this.#put(stream);
    this.#size++;
  }

  /** Removes a stream. Returns whether the stream was in the table. */
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

  /** Returns the streams in the table at this moment, whatever happens to the table meanwhile. */
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
