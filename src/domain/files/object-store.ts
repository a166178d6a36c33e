// The store of file contents: a disk or an object store.

/** A range of bytes. `start` is included, `end` is not. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface ObjectWriter {
  /**
   * Writes bytes. Resolves when the buffer may be reused and the next write may begin. Only one write may run at a
   * time.
   */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when the object is complete and durable. Rejects if the store reports another length. */
  finish(): Promise<void>;
  /** Discards the unfinished object. Never rejects. */
  abandon(): Promise<void>;
}

/**
 * Names consist of letters, digits, hyphens and underscores. All methods reject with `service_unavailable` if the store
 * cannot be used.
 */
export interface ObjectStore {
  /** Begins a new object. Once finished, it replaces an existing object of the same name. */
  create(name: string): Promise<ObjectWriter>;
  /**
   * Reads a range in chunks. The caller may keep each chunk, which has its own buffer. Rejects with `not_found` if the
   * object is missing, and with `service_unavailable` if the store returns fewer or more bytes than `range`.
   */
  read(name: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /** Deletes the object. Does nothing if the object does not exist. */
  delete(name: string): Promise<void>;
}
