// The byte stream of a connection that was upgraded to another protocol.

export interface ByteChannel {
  /** IP address of the peer, without port. */
  readonly peer: string;
  /** The number of written bytes that the kernel has not accepted yet. */
  readonly unsentBytes: number;
  /** True if nothing can be written any more. */
  readonly closed: boolean;
  /**
   * Starts delivering input. May be called only once. Input that has already arrived is delivered before `listen`
   * returns.
   */
  listen(listener: ByteChannelListener): void;
  /**
   * Writes bytes. The caller may then reuse the array, because bytes that the kernel does not accept are copied. Does
   * nothing on a closed channel.
   */
  write(bytes: Uint8Array): void;
  /**
   * Closes the channel after all written bytes were sent. Later input is discarded. Does nothing on a closed
   * channel.
   */
  end(): void;
  /** Closes the channel immediately. Bytes that were not sent yet are dropped. */
  terminate(): void;
}

/** A channel whose input can be paused. */
export interface PausableChannel extends ByteChannel {
  /** Pauses input. Only bytes that have already been received may still be delivered. */
  pause(): void;
  resume(): void;
}

export interface ByteChannelListener {
  /** Called with received bytes, which the listener may keep and change. */
  data(bytes: Buffer): void;
  /** Called when all written bytes were sent. */
  drained(): void;
  /** Called once, when either side has closed the channel. */
  closed(): void;
}
