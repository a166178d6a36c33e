// The bytes of an upgraded connection, which carries another protocol in both directions.

export interface ByteChannel {
  /** Address of the peer, without its port. */
  readonly peer: string;
  /** Bytes that were written and that the kernel has not taken yet. */
  readonly unsentBytes: number;
  /** Whether writing is no longer possible. */
  readonly closed: boolean;
  /** Begins to deliver input; call it once. Bytes read earlier are delivered before it returns. */
  listen(listener: ByteChannelListener): void;
  /**
   * Writes bytes. Bytes that the kernel does not take are copied, so the caller may reuse the array. Does nothing on a
   * closed channel.
   */
  write(bytes: Uint8Array): void;
  /** Closes the channel after the written bytes. Later input is discarded. Harmless on a closed channel. */
  end(): void;
  /** Closes the channel immediately. */
  terminate(): void;
}

/** A channel whose peer can be made to wait. */
export interface PausableChannel extends ByteChannel {
  /** Pauses input; afterwards only bytes that were already received are delivered. */
  pause(): void;
  resume(): void;
}

export interface ByteChannelListener {
  /** Receives bytes; the listener owns them, and may keep and change them. */
  data(bytes: Buffer): void;
  /** Called when all unsent bytes have left. */
  drained(): void;
  /** Called once, whichever side closed the channel. */
  closed(): void;
}
