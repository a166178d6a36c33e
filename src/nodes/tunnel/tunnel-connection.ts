// The connection of a tunnel at either end: sends and receives messages, exchanges heartbeats, and closes with a
// reason.

import type { MessageLink, MessageLinkListener } from "../../base/bytes/message-link.ts";
import { exactMs } from "../../base/clock.ts";
import { type TunnelLimits, tunnelCloseCodes } from "./contract.ts";
import { headBytes, maxPingBytes, messageTypes, ProtocolError } from "./messages.ts";

/** Receives the messages: first the handshake, later the tunnel of the verified node. */
export interface TunnelUser {
  /** Handles a message. Throws a ProtocolError if it is not allowed. The payload may be kept. */
  received(type: number, stream: number, payload: Buffer): void;
  /** Called when the connection can send again. */
  drained(): void;
  /** Called several times a second. */
  tick(nowMs: number): void;
  /** Called once when the connection is closed, by either end. */
  ended(code: number, reason: string): void;
}

/** Maximum unsent bytes up to which bodies are sent. */
const maxUnsentBytes = 512 * 1024;
/**
 * Number of unsent bytes at which the connection is closed, because the other end does not read. Small messages are
 * sent beyond `maxUnsentBytes`, so they need this limit.
 */
const farTooMuchUnsentBytes = 8 * 1024 * 1024;
const ticksPerHeartbeat = 5;
const empty = new Uint8Array(0);
/** Reused buffer for the bytes before each payload. The link copies it. */
const head = Buffer.alloc(headBytes);

export class TunnelConnection implements MessageLinkListener {
  readonly #link: MessageLink;
  readonly #limits: TunnelLimits;
  #user: TunnelUser;
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #tickMs: number;
  #lastTickMs: number;
  #lastHeardMs: number;
  #lastPingMs: number;
  /** True after the node is verified: heartbeats are sent and expected. */
  #beating = false;
  #pings = 0;
  #roundTripMs: number | undefined;
  #isOver = false;

  constructor(link: MessageLink, limits: TunnelLimits, user: (connection: TunnelConnection) => TunnelUser) {
    this.#link = link;
    this.#limits = limits;
    this.#tickMs = Math.max(1, limits.heartbeatMs / ticksPerHeartbeat);
    const nowMs = exactMs();
    this.#lastTickMs = nowMs;
    this.#lastHeardMs = nowMs;
    this.#lastPingMs = nowMs;
    this.#user = user(this);
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
  }

  get peer(): string {
    return this.#link.peer;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** True if bodies must wait until `drained` is called. */
  get behind(): boolean {
    return this.#link.unsentBytes > maxUnsentBytes;
  }

  get roundTripMs(): number | undefined {
    return this.#roundTripMs;
  }

  /** Passes messages to `user` from now on, and begins to exchange heartbeats. */
  established(user: TunnelUser): void {
    this.#user = user;
    this.#beating = true;
  }

  /** Sends a message. The payload is copied. */
  send(type: number, stream: number, payload: Uint8Array = empty): void {
    if (this.#isOver) return;
    head[0] = type;
    head.writeUInt32BE(stream, 1);
    this.#link.send(head, payload);
  }

  sendText(type: number, stream: number, payload: string): void {
    this.send(type, stream, Buffer.from(payload));
  }

  /** Closes the connection and calls `ended` at once. The other end gets the reason. Does nothing if already closed. */
  close(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#link.close(code, reason);
    this.#end(code, reason);
  }

  message(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#lastHeardMs = exactMs();
    const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#guarded(() => {
      if (message.length < headBytes) throw new ProtocolError("a message has no head");
      this.#received(message[0] as number, message.readUInt32BE(1), message.subarray(headBytes));
    });
    this.#checkUnsent();
  }

  drained(): void {
    if (!this.#isOver) this.#user.drained();
  }

  closed(code: number, reason: string): void {
    this.#end(code, reason);
  }

  #received(type: number, stream: number, payload: Buffer): void {
    if (!this.#beating || (type !== messageTypes.ping && type !== messageTypes.pong)) {
      this.#user.received(type, stream, payload);
      return;
    }
    if (stream !== 0 || payload.length > maxPingBytes) throw new ProtocolError("a heartbeat is malformed");
    // Do not answer pings while the other end does not read, because the answers would pile up.
    if (type === messageTypes.ping && !this.behind) this.send(messageTypes.pong, 0, payload);
    else if (type === messageTypes.pong) this.#heardPong(payload);
  }

  #heardPong(payload: Buffer): void {
    if (payload.length === 4 && payload.readUInt32BE(0) === this.#pings) {
      this.#roundTripMs = exactMs() - this.#lastPingMs;
    }
  }

  #tick(): void {
    const nowMs = exactMs();
    const { heartbeatMs, silenceMs } = this.#limits;
    // If this process was suspended, the silence may be its own. Give the other end time for another heartbeat.
    if (nowMs - this.#lastTickMs > 2 * this.#tickMs + heartbeatMs) {
      this.#lastHeardMs = Math.max(this.#lastHeardMs, nowMs - silenceMs + heartbeatMs);
    }
    this.#lastTickMs = nowMs;
    if (this.#beating && nowMs - this.#lastHeardMs > silenceMs) {
      this.#cut(`nothing came for ${Math.round(silenceMs / 100) / 10} s`);
      return;
    }
    if (this.#beating && nowMs - this.#lastPingMs >= heartbeatMs) this.#ping(nowMs);
    this.#guarded(() => this.#user.tick(nowMs));
    this.#checkUnsent();
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.close(tunnelCloseCodes.protocol, error.message);
    }
  }

  #checkUnsent(): void {
    if (this.#link.unsentBytes > farTooMuchUnsentBytes) this.#cut("the other end does not read");
  }

  #ping(nowMs: number): void {
    this.#lastPingMs = nowMs;
    this.#pings = (this.#pings + 1) >>> 0;
    const payload = Buffer.allocUnsafe(4);
    payload.writeUInt32BE(this.#pings);
    this.send(messageTypes.ping, 0, payload);
  }

  #cut(reason: string): void {
    this.#end(tunnelCloseCodes.broken, reason);
    this.#link.terminate();
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#user.ended(code, reason);
  }
}
