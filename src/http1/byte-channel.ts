// The bytes of an upgraded connection in both directions, in another protocol.

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
   * Writes bytes. Those that the kernel does not take are copied, so they may change afterwards. Does nothing once it
   * is closed.
   */
  write(bytes: Uint8Array): void;
  /** Ends it after the written bytes. Later input is discarded. Harmless on a closed channel. */
  end(): void;
  /** Ends it immediately. */
  terminate(): void;
}

/** A channel whose peer can be made to wait. */
export interface PausableChannel extends ByteChannel {
  /** After the call only bytes that were already received are delivered. */
  pause(): void;
  resume(): void;
}

export interface ByteChannelListener {
  /** The listener owns the bytes, and may keep and change them. */
  data(bytes: Buffer): void;
  /** All unsent bytes have left. */
  drained(): void;
  /** Called once, whichever side ended it. */
  closed(): void;
}
