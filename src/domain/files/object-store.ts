// Where the bytes of files are: on a disk, or in an object store.

/** Bytes from `start`, before `end`. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface ObjectWriter {
  /** Resolves once more may be written, and the bytes are free: what is held meanwhile is bounded. One write at a time. */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves once all of it is there under its name, and stays: a store that says so and has another length of it rejects. */
  finish(): Promise<void>;
  /** Nothing of it stays. Never rejects. */
  abandon(): Promise<void>;
}

/** Names are of letters, digits, hyphens and underscores. Everything rejects with `service_unavailable` where the store cannot be used. */
export interface ObjectStore {
  /** Replaces what has that name once it is finished. */
  create(name: string): Promise<ObjectWriter>;
  /**
   * In pieces that are their taker's, each in a buffer of its own. Rejects with `not_found` where there is none, and with
   * `service_unavailable` where a store has fewer bytes than `range`, or gives more.
   */
  read(name: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /** Also where there is none. */
  delete(name: string): Promise<void>;
}
