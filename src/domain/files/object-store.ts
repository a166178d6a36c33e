// The store of file contents: a disk or an object store.

/** Bytes from `start`, before `end`. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface ObjectWriter {
  /**
   * Resolves when the bytes may be reused and more may be written, which bounds the buffered bytes. One write at a
   * time.
   */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when the object is complete and durable under its name. Rejects if the store reports another length. */
  finish(): Promise<void>;
  /** Discards the object. Never rejects. */
  abandon(): Promise<void>;
}

/**
 * Names consist of letters, digits, hyphens and underscores. All methods reject with `service_unavailable` if the store
 * cannot be used.
 */
export interface ObjectStore {
  /** Begins a new object, which replaces an existing one of the same name when it is finished. */
  create(name: string): Promise<ObjectWriter>;
  /**
   * Reads a range in chunks, each in a buffer of its own that the caller may keep. Rejects with `not_found` for a
   * missing object, and with `service_unavailable` if the store has fewer bytes than `range`, or sends more.
   */
  read(name: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /** Deletes the object. Succeeds also if there is none. */
  delete(name: string): Promise<void>;
}
