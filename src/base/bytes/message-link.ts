// The port of a connection that carries whole messages, in order, both ways: the tunnel to a node, or a conversation as it is spoken.

export interface MessageLink {
  /** The address at the other end, for the log. */
  readonly peer: string;
  /** Bytes that were sent and have not left this process yet. */
  readonly unsentBytes: number;
  /** One message, of `message` and what follows it in `rest`. Both may change afterwards. Does nothing once it is closed. */
  send(message: Uint8Array, rest?: Uint8Array): void;
  /** Ends it after what was sent; `reason` is text for the other end's log, at most 120 bytes. Harmless when closed. */
  close(code: number, reason: string): void;
  /** Ends it at once, without a word. */
  terminate(): void;
}

/** One whose other end can be kept waiting. */
export interface PausableLink extends MessageLink {
  /** After it, at most the messages are given that were received already. */
  pause(): void;
  resume(): void;
}

export interface MessageLinkListener {
  /** The bytes may be kept; they may be a small part of what was received, which is kept with them. */
  message(bytes: Uint8Array): void;
  /** Everything unsent has left: more can be sent. */
  drained(): void;
  /** Once, whoever ended it. 1006 where the connection broke off (RFC 6455, 7.4.1). */
  closed(code: number, reason: string): void;
}
