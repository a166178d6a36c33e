// The open streams of a tunnel by number.

/** A stream with the member that the table needs. It can be in one table at a time. */
export interface Tabled<Stream> {
  readonly id: number;
  /** The next stream in the same bucket. Only the table sets it. */
  nextInTable: Stream | undefined;
}

const fewRows = 16;

/**
 * A hash table of streams. It is used instead of a Map, whose abandoned internal tables can keep ended streams in
 * memory until the next full garbage collection. Stream numbers increase, so their low bits spread them over the
 * buckets.
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

  /** Adds a stream. Its number must not be in the table. */
  add(stream: Stream): void {
    if (this.#size === this.#rows.length) this.#grow();
    this.#put(stream);
    this.#size++;
  }

  /** Removes a stream. Returns whether it was in the table. */
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

  /** Iterates over the streams that are in the table at this moment, even if the table changes meanwhile. */
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
