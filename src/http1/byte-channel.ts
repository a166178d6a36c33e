// The bytes of a connection that speaks another protocol from here on, both ways: what an upgrade hands over.

export interface ByteChannel {
  /** Address of the peer, without its port. */
  readonly peer: string;
  /** Bytes that were written and that the kernel has not taken yet. */
  readonly unsentBytes: number;
  /** Whether nothing can be written any more. */
  readonly closed: boolean;
  /** Begins to give what comes, once; what was read before is given before it returns. */
  listen(listener: ByteChannelListener): void;
  /**
   * Writes bytes. Those that the kernel does not take are copied: they may change afterwards. Does nothing once it is
   * closed.
   */
  write(bytes: Uint8Array): void;
  /** Ends it after what was written; what still comes is thrown away. Harmless when closed. */
  end(): void;
  /** Ends it at once. */
  terminate(): void;
}

/** One whose peer can be kept waiting. */
export interface PausableChannel extends ByteChannel {
  /** After it, at most what was received already is given. */
  pause(): void;
  resume(): void;
}

export interface ByteChannelListener {
  /** The bytes are the listener's own: they may be kept and changed. */
  data(bytes: Buffer): void;
  /** All that was unsent is gone. */
  drained(): void;
  /** Once, whoever ended it. */
  closed(): void;
}
