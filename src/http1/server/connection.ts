// One client connection of the HTTP server. It reads requests one after another, and enforces deadlines.

import { bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { freeBytes } from "../../base/bytes/free-bytes.ts";
import type { ExactClock } from "../../base/clock.ts";
import type { GatewayError } from "../../base/errors.ts";
import { type IndexedItem, noIndex } from "../../base/indexed-set.ts";
import type { PausableChannel } from "../byte-channel.ts";
import { HeadError, Http2PrefaceError, type RequestHead } from "../head.ts";
import type { HeaderFields, PassableRequest, Reply } from "../message.ts";
import { ConnectionBody } from "./connection-body.ts";
import { ConnectionInput } from "./connection-input.ts";
import { type ByteTaker, ConnectionOutput } from "./connection-output.ts";
import { ConnectionRequest, type RequestConnection } from "./connection-request.ts";
import { http2Refusal } from "./http2-refusal.ts";
import { putHead, scratch } from "./outgoing.ts";
import { OutgoingReply, type ReplyConnection } from "./outgoing-reply.ts";
import {
  type Http1Limits,
  slowestBodyBytesPerSecond,
  slowestBytesPerSecond,
  slowestFlowBytesPerSecond,
} from "./server-limits.ts";
import { type Sender, turnOutput } from "./turn-output.ts";
import { UpgradedConnection, type UpgradedSocket } from "./upgraded-connection.ts";

/** The parts of the server that a connection uses. */
export interface ConnectionServer {
  readonly limits: Http1Limits;
  readonly clock: ExactClock;
  /** True if each connection must be closed after its next answer. */
  readonly leaving: boolean;
  /** True if the server accepts no new requests. */
  readonly stopping: boolean;
  /** True if each request is preceded by a line with the client's address (see peer-line.ts). */
  readonly reportsPeers: boolean;
  onRequest(request: PassableRequest, reply: Reply): void;
  onMalformed(fault: { status: number; reason: string; peer: string }): { headers: HeaderFields; body: string };
  onFault(error: unknown): void;
  requestBegan(): void;
  requestEnded(): void;
  /**
   * Counts bytes that were discarded, over all connections. Returns false if reading must pause until the next check of
   * deadlines.
   */
  discards(bytes: number): boolean;
  /** Replaces a connection by its successor after a protocol upgrade. */
  handOver(from: Connection, to: UpgradedConnection): void;
}

/** The parts of Bun's socket that a connection uses. */
export interface ConnectionSocket extends ByteTaker, UpgradedSocket {
  readonly remoteAddress: string | undefined;
  /** The object that handles the socket's events. An upgrade replaces it. */
  data?: ServerConnection;
  /** Closes the socket after all written bytes were sent. */
  end(): void;
}

/** The state that the server stores for each socket. */
export type ServerConnection = Connection | UpgradedConnection;

const never = Number.POSITIVE_INFINITY;
/**
 * A piece of a body is freed once it was copied, if it has at least this size. For smaller pieces, that is not
 * worthwhile.
 */
const freedFromBytes = 16 * 1024;

export class Connection implements RequestConnection, ReplyConnection, Sender, IndexedItem {
  setIndex = noIndex;
  /**
   * The client's IP address, or the address in the line before the current request. Empty if the client had already
   * left.
   */
  peer: string;
  readonly #server: ConnectionServer;
  readonly #clock: ExactClock;
  readonly #socket: ConnectionSocket;
  /** Received bytes that follow the current request. */
  readonly #input: ConnectionInput;
  /** The number of input bytes that count on the memory account `#inputAccount`. */
  #countedInput = 0;
  #inputAccount: MemoryAccount = bufferedBytes.visitors;
  #countedUnasked = 0;
  /** Output that the kernel does not accept yet. Undefined if everything was accepted. */
  #unsent: ConnectionOutput | undefined;
  #request: ConnectionRequest | undefined;
  #reply: OutgoingReply | undefined;
  /** The body of the current request, until it has arrived completely. */
  #body: ConnectionBody | undefined;
  #bodySinceMs = 0;
  #keepsAlive = true;
  /**
   * Time in monotonic milliseconds since which output has been waiting for the client. `#takenBytes` is the number of
   * bytes sent since then.
   */
  #behindSinceMs = 0;
  #takenBytes = 0;
  /** True while bytes of this connection wait in TurnOutput for the end of the event loop tick. */
  #gathered = false;
  /** Bytes of the answer that are not written yet because the client is slow. They count on the memory account. */
  #countedWaiting = 0;
  /** True if the answer was written completely, even if not all of it has been sent. */
  #answered = false;
  /** True if the connection will be closed once everything is sent. */
  #ending = false;
  #lingering = false;
  #discardedBytes = 0;
  #paused = false;
  #advancing = false;
  #closed = false;
  /** Monotonic milliseconds since which the receiver of the body has paused. Undefined if it is not paused. */
  #stoppedSinceMs: number | undefined;
  #deadlineMs: number;

  constructor(server: ConnectionServer, socket: ConnectionSocket) {
    this.#server = server;
    this.#clock = server.clock;
    this.#socket = socket;
    // The address is read now, because a connection that was reset no longer has one.
    this.peer = socket.remoteAddress ?? "";
    this.#input = new ConnectionInput(server.limits, server.reportsPeers);
    this.#deadlineMs = this.#clock.exactMs() + server.limits.idleMs;
  }

  get closesAfterAnswer(): boolean {
    return !this.#keepsAlive || this.#server.leaving || this.#request?.bodyRead !== true;
  }

  get behind(): boolean {
    return this.#unsent !== undefined;
  }

  /** Called by the server with received bytes. */
  data(bytes: Buffer): void {
    if (this.#lingering || this.#ending) {
      this.#discard(bytes);
      return;
    }
    if (!this.#request) {
      this.#input.append(bytes, 0);
      this.#advance();
    } else {
      const body = this.#body;
      const end = body ? this.#pushBody(body, bytes) : 0;
      if (end < bytes.length) this.#input.append(bytes, end);
      else if (body?.isCopied && end >= freedFromBytes) freeBytes(bytes);
      this.regulate();
    }
    this.#countUnread();
  }

  /** Called by the server when the kernel accepts bytes again. */
  drain(): void {
    const unsent = this.#unsent;
    if (!unsent) return;
    const taken = unsent.flush();
    if (taken > 0) this.#tookSome(taken);
    if (unsent.behind) return;
    this.#unsent = undefined;
    this.#deadlineMs = never;
    if (this.#ending || this.#answered) {
      if (!this.#gathered) this.#sentAll();
    } else {
      if (this.#body?.awaited) this.#setBodyDeadline();
      this.#reply?.drained();
    }
  }

  /** Called by the server when either side has closed the socket. */
  didClose(reason?: GatewayError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#deadlineMs = never;
    this.#input.clear();
    this.#unsent?.clear();
    this.#unsent = undefined;
    const request = this.#request;
    if (!request) {
      this.#countUnread();
      return;
    }
    const body = this.#body;
    const reply = this.#reply;
    const answered = this.#answered;
    this.#forgetRequest();
    reply?.detach();
    // The body fails, so that the code that reads it learns that the client has left.
    body?.fail("incomplete", "The client left before all of the body was here.");
    this.#countUnread();
    if (!answered) request.clientLeft(reason);
  }

  /** Closes the connection and makes the running request fail. `reason` is undefined if the client left. */
  destroy(reason?: GatewayError): void {
    if (!this.#closed) this.#socket.terminate();
    this.didClose(reason);
  }

  /** Closes the connection unless a request is being received or answered. */
  closeIfIdle(): void {
    if (!this.#request && this.#input.length === 0 && !this.#ending && !this.#lingering) this.#socket.end();
  }

  /**
   * Closes the connection immediately, even during a request. If it is only discarding input after the last answer, it
   * is closed without a reset.
   */
  close(): void {
    // A reset could make the client lose the end of the last answer.
    if (this.#lingering && !this.#closed) this.#socket.end();
    else this.destroy();
  }

  /** Handles a deadline that has passed at `nowMs`. */
  checkDeadline(nowMs: number): void {
    if (nowMs < this.#deadlineMs) {
      if (this.#lingering || this.#ending) this.regulate();
      return;
    }
    this.#deadlineMs = never;
    if (this.#lingering || this.behind) {
      this.close();
    } else if (this.#body?.isStopped) {
      // The receiver of the body is slow, and not the client. `regulate` sets a new deadline when the receiver resumes.
    } else if (this.#body) {
      this.#body.fail("incomplete", "The body did not arrive in time.");
    } else if (this.#input.length > 0) {
      const seconds = Math.round(this.#server.limits.headMs / 1000);
      this.refuse(408, `The head of a request must be complete within ${seconds} seconds of its first byte.`);
    } else {
      this.#socket.end();
    }
  }

  /** Answers invalid input with an error, and then closes the connection. */
  refuse(status: number, reason: string, more?: HeaderFields): void {
    const { headers, body } = this.#server.onMalformed({ status, reason, peer: this.peer });
    const bytes = Buffer.from(body);
    this.write(scratch, 0, putHead(status, { ...more, ...headers }, bytes.length, "close"));
    this.write(bytes, 0, bytes.length);
    this.#end();
  }

  #refuseHttp2({ status, message }: Http2PrefaceError): void {
    this.#server.onMalformed({ status, reason: message, peer: this.peer });
    const bytes = http2Refusal(message);
    this.write(bytes, 0, bytes.length);
    this.#end();
  }

  awaitBody(): void {
    this.#countUnread();
    this.#bodySinceMs = this.#clock.exactMs();
    this.#setBodyDeadline();
    this.regulate();
  }

  sendContinue(): void {
    const bytes = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");
    this.write(bytes, 0, bytes.length);
  }

  write(bytes: Buffer, start: number, end: number): void {
    if (this.#closed || start === end) return;
    if (this.#gathered) turnOutput.send();
    this.sendGathered(bytes, start, end);
  }

  writeSoon(bytes: Buffer, start: number, end: number): void {
    if (this.#closed || start === end) return;
    if (!this.behind && turnOutput.gather(this, bytes, start, end)) this.#gathered = true;
    else this.write(bytes, start, end);
  }

  sendGathered(bytes: Buffer, start: number, end: number): void {
    if (this.#closed) return;
    if (this.#unsent) {
      this.#keep(this.#unsent, bytes, start, end);
      return;
    }
    const taken = this.#socket.write(bytes, start, end - start);
    // If the socket is closed, nothing is buffered.
    if (taken < 0 || taken === end - start) return;
    this.#unsent = new ConnectionOutput(this.#socket, this.#request?.memoryAccount ?? bufferedBytes.visitors);
    this.#keep(this.#unsent, bytes, start + taken, end);
    this.#behindSinceMs = this.#clock.exactMs();
    this.#takenBytes = 0;
    this.#deadlineMs = this.#behindSinceMs + this.#server.limits.unsentMs;
  }

  waits(bytes: number): void {
    const memoryAccount = this.#request?.memoryAccount;
    const more = bytes - this.#countedWaiting;
    if (!memoryAccount || more === 0) return;
    if (more < 0) {
      memoryAccount.release("unsent", -more);
    } else {
      const refusal = memoryAccount.take("unsent", more);
      if (refusal) {
        this.#destroySoon(refusal);
        return;
      }
    }
    this.#countedWaiting = bytes;
  }

  gatheredSent(): void {
    this.#gathered = false;
    if (this.#closed || this.#lingering || this.behind) return;
    if (this.#ending || this.#answered) this.#sentAll();
  }

  upgrade(head: Buffer, end: number): PausableChannel {
    if (this.#request?.hasBody !== false) throw new Error("A request with a body cannot be upgraded.");
    const channel = new UpgradedConnection(
      this.#socket,
      this.peer,
      this.#unsent ?? new ConnectionOutput(this.#socket, bufferedBytes.bounded),
      this.#server.limits,
      this.#input.rest(),
      (error) => this.#server.onFault(error),
    );
    this.#countUnread();
    // From now on, calls for the old request must not touch the socket.
    this.#closed = true;
    this.#deadlineMs = never;
    this.#forgetRequest();
    this.#socket.data = channel;
    this.#server.handOver(this, channel);
    channel.write(head.subarray(0, end));
    return channel;
  }

  answered(closes: boolean): void {
    if (closes) this.#keepsAlive = false;
    this.#answered = true;
    if (!this.#sending) this.#finish();
  }

  brokeOff(looksComplete: boolean): void {
    turnOutput.send();
    // With a reset, the client knows that the answer is incomplete. If the client can tell anyway, a normal close
    // delivers the bytes sent so far.
    if (looksComplete || this.behind) {
      this.destroy();
      return;
    }
    this.#keepsAlive = false;
    this.#finish();
  }

  /** Buffers output that the kernel did not accept. If the memory account is full, closes the connection. */
  #keep(unsent: ConnectionOutput, bytes: Buffer, start: number, end: number): void {
    const refusal = unsent.keep(bytes, start, end);
    if (refusal) this.#destroySoon(refusal);
  }

  /** Closes the connection in a microtask, because the code that is writing the answer must finish first. */
  #destroySoon(reason: GatewayError): void {
    queueMicrotask(() => this.destroy(reason));
  }

  /** Counts received bytes that do not belong to a running request on a memory account. */
  #countUnread(): void {
    this.#countUnasked();
    const bytes = this.#input.length;
    // Bytes that arrive during a request are never refused, because `windowBytes` limits them for each connection.
    const memoryAccount = this.#request ? bufferedBytes.bounded : bufferedBytes.visitors;
    if (bytes === this.#countedInput && (bytes === 0 || memoryAccount === this.#inputAccount)) return;
    this.#inputAccount.release("heads", this.#countedInput);
    this.#inputAccount = memoryAccount;
    this.#countedInput = 0;
    if (!memoryAccount.take("heads", bytes)) {
      this.#countedInput = bytes;
      return;
    }
    this.#input.clear();
    this.refuse(
      503,
      "The server holds as many bytes of unfinished requests as it may at the moment. Retry in a moment.",
    );
  }

  #countUnasked(): void {
    const unasked = this.#closed || !this.#body ? 0 : this.#body.unaskedBytes;
    if (unasked === this.#countedUnasked) return;
    bufferedBytes.add("requests", unasked - this.#countedUnasked);
    this.#countedUnasked = unasked;
  }

  /** Reports whether bytes that were written to this connection have not been sent yet. */
  get #sending(): boolean {
    return this.#gathered || this.behind;
  }

  /**
   * Sets the deadline after bytes were sent. A minimum speed ensures that a slow client cannot keep the rest in memory
   * forever.
   */
  #tookSome(bytes: number): void {
    const { unsentMs } = this.#server.limits;
    this.#takenBytes += bytes;
    const paceMs = unsentMs + (this.#takenBytes / slowestBytesPerSecond) * 1000;
    this.#deadlineMs = Math.min(this.#clock.exactMs() + unsentMs, this.#behindSinceMs + paceMs);
  }

  #pushBody(body: ConnectionBody, bytes: Buffer): number {
    const end = body.push(bytes, 0);
    if (body.complete) {
      this.#body = undefined;
      // If output is waiting for the client, the deadline for that output stays.
      if (!this.behind) this.#deadlineMs = never;
    } else if (body.awaited) {
      this.#setBodyDeadline();
    }
    return end;
  }

  #setBodyDeadline(): void {
    if (!this.#body || this.behind) return;
    const { bodyIdleMs, bodyMs } = this.#server.limits;
    const { receivedBytes, isFlowing } = this.#body;
    const paceMs = bodyIdleMs + (receivedBytes / slowestBodyBytesPerSecond) * 1000;
    const longMs = isFlowing ? (receivedBytes / slowestFlowBytesPerSecond) * 1000 : 0;
    const maxMs = Math.min(paceMs, Math.max(bodyMs, longMs));
    this.#deadlineMs = Math.min(this.#clock.exactMs() + bodyIdleMs, this.#bodySinceMs + maxMs);
  }

  /** Begins the next request. If it is answered immediately, begins the one after it, and so on. */
  #advance(): void {
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      while (this.#input.length > 0 && !this.#request && !this.#closed && !this.#ending && !this.#lingering) {
        if (!this.#begin()) break;
      }
    } catch (error) {
      if (!(error instanceof HeadError)) throw error;
      this.#input.clear();
      if (error instanceof Http2PrefaceError) this.#refuseHttp2(error);
      else this.refuse(error.status, error.message);
    } finally {
      this.#advancing = false;
    }
  }

  /** Begins the next request. Returns false if its headers are incomplete. Throws a HeadError for invalid headers. */
  #begin(): boolean {
    const wasPartial = this.#input.partial;
    const read = this.#input.take();
    if (!read) {
      if (!wasPartial) this.#deadlineMs = this.#clock.exactMs() + this.#server.limits.headMs;
      return false;
    }
    const { head } = read;
    const { body } = this.#input;
    this.#input.body = undefined;
    if (this.#server.reportsPeers) this.#takePeer();
    this.#keepsAlive = read.keepsAlive;
    if (body instanceof ConnectionBody && !body.complete) this.#body = body;
    this.#dispatch(new ConnectionRequest(this, head, body, read.expectsContinue), head);
    return true;
  }

  #takePeer(): void {
    this.peer = this.#input.peer ?? "";
    this.#input.peer = undefined;
  }

  #dispatch(request: ConnectionRequest, head: RequestHead): void {
    // A worker process always answers in HTTP/1.1, because the primary process must be able to tell whether an answer
    // is complete.
    const reply = new OutgoingReply(this, head.method, this.#server.reportsPeers ? "1.1" : head.version);
    this.#request = request;
    this.#reply = reply;
    this.#deadlineMs = never;
    this.#server.requestBegan();
    try {
      this.#server.onRequest(request, reply);
    } catch (error) {
      this.destroy();
      this.#server.onFault(error);
      return;
    }
    if (this.#request) this.regulate();
  }

  /** Called when everything was sent that precedes the next request or the close of the connection. */
  #sentAll(): void {
    if (this.#ending) this.#linger();
    else this.#finish();
  }

  /** Called when the whole answer was sent. */
  #finish(): void {
    const bodyPending = this.#body !== undefined;
    this.#forgetRequest();
    if (!this.#keepsAlive || bodyPending || this.#server.stopping) {
      this.#end();
      return;
    }
    this.#deadlineMs = this.#clock.monotonicMs() + this.#server.limits.idleMs;
    if (this.#input.length > 0 && !this.#advancing) {
      // The next request begins in a microtask, because the caller may still have work for the previous one.
      queueMicrotask(() => {
        this.#advance();
        if (!this.#request) this.regulate();
        this.#countUnread();
      });
    } else {
      this.regulate();
    }
  }

  #forgetRequest(): void {
    const request = this.#request;
    if (this.#countedWaiting > 0) this.waits(0);
    this.#request = undefined;
    this.#reply = undefined;
    this.#body = undefined;
    this.#answered = false;
    this.#server.requestEnded();
    request?.over();
    this.#countUnasked();
  }

  /** Stops reading requests, and closes the connection once all written bytes were sent. */
  #end(): void {
    this.#input.clear();
    this.#countUnread();
    this.#ending = true;
    if (!this.#sending && !this.#closed) this.#linger();
  }

  /**
   * Closes the sending side first, and discards input for a while (RFC 9112, 9.6). If the client is still sending, an
   * immediate close would reset the connection, and the client could lose the answer.
   */
  #linger(): void {
    this.#lingering = true;
    this.#deadlineMs = this.#clock.exactMs() + this.#server.limits.lingerMs;
    this.#socket.shutdown();
    this.regulate();
  }

  #discard(bytes: Buffer): void {
    const { length } = bytes;
    freeBytes(bytes);
    this.#discardedBytes += length;
    if (this.#discardedBytes > this.#server.limits.lingerBytes) {
      this.destroy();
    } else if (!this.#server.discards(length) && !this.#paused) {
      this.#paused = true;
      this.#socket.pause();
    }
  }

  /** Pauses reading if more has arrived than the request needs now. Resumes reading once more is needed. */
  regulate(): void {
    const full = this.#request !== undefined && this.#isFull();
    if (full === this.#paused || this.#closed) return;
    this.#paused = full;
    if (full) this.#socket.pause();
    else this.#socket.resume();
    this.#countStopped();
  }

  /**
   * Extends the body's deadline by the time for which the receiver paused, because the client is not at fault for the
   * pause.
   */
  #countStopped(): void {
    const body = this.#body;
    if (body?.isStopped) {
      this.#stoppedSinceMs ??= this.#clock.exactMs();
      return;
    }
    if (this.#stoppedSinceMs === undefined) return;
    this.#bodySinceMs += this.#clock.exactMs() - this.#stoppedSinceMs;
    this.#stoppedSinceMs = undefined;
    if (body?.awaited) this.#setBodyDeadline();
  }

  #isFull(): boolean {
    if (this.#body) return this.#body.full;
    return this.#input.length > this.#server.limits.windowBytes;
  }
}
