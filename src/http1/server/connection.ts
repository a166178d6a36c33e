// One client's connection: reads its requests one at a time, and enforces deadlines.

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

/** The members of its server that a connection needs. */
export interface ConnectionServer {
  readonly limits: Http1Limits;
  readonly clock: ExactClock;
  /** Whether each answer that begins now ends its connection. */
  readonly leaving: boolean;
  /** Whether no further request is accepted. */
  readonly stopping: boolean;
  /** Whether a line before each request names its peer. */
  readonly reportsPeers: boolean;
  onRequest(request: PassableRequest, reply: Reply): void;
  onMalformed(fault: { status: number; reason: string; peer: string }): { headers: HeaderFields; body: string };
  onFault(error: unknown): void;
  requestBegan(): void;
  requestEnded(): void;
  /** Counts discarded bytes. Returns false if no more may be discarded until the next check of deadlines. */
  discards(bytes: number): boolean;
  /** Hands the socket over to another protocol for good. */
  handOver(from: Connection, to: UpgradedConnection): void;
}

/** The part of Bun's socket that a connection needs. */
export interface ConnectionSocket extends ByteTaker, UpgradedSocket {
  readonly remoteAddress: string | undefined;
  /** The object that receives the socket's bytes and events. */
  data?: ServerConnection;
  /** Closes the socket once the written bytes have left. */
  end(): void;
}

/** The state that the server keeps for each socket. */
export type ServerConnection = Connection | UpgradedConnection;

const never = Number.POSITIVE_INFINITY;
/** Pieces of a body from this size on are freed once copied; for smaller ones that costs more than it saves. */
const freedFromBytes = 16 * 1024;

export class Connection implements RequestConnection, ReplyConnection, Sender, IndexedItem {
  setIndex = noIndex;
  /**
   * The client's address, or that of the current request's client if a line names it. Empty if the client left before
   * the address was known.
   */
  peer: string;
  readonly #server: ConnectionServer;
  readonly #clock: ExactClock;
  readonly #socket: ConnectionSocket;
  /** Received bytes that belong neither to the current request nor to its body. */
  readonly #input: ConnectionInput;
  /** The counted bytes of input and of a body that was not requested; the memory account of the input. */
  #countedInput = 0;
  #inputAccount: MemoryAccount = bufferedBytes.visitors;
  #countedUnasked = 0;
  /** Set while the client receives more slowly than the answer is written. */
  #unsent: ConnectionOutput | undefined;
  #request: ConnectionRequest | undefined;
  #reply: OutgoingReply | undefined;
  /** The body of the current request, while it is incomplete. */
  #body: ConnectionBody | undefined;
  #bodySinceMs = 0;
  #keepsAlive = true;
  /** The time since when the client has been behind with its answer, and the bytes that it took since. */
  #behindSinceMs = 0;
  #takenBytes = 0;
  /** Whether the last bytes are still gathered until the end of the event loop tick. */
  #gathered = false;
  /** The counted bytes that wait to be written while the client is behind. */
  #countedWaiting = 0;
  /** Whether the answer was written completely, although the kernel has not taken all of it. */
  #answered = false;
  /** Whether the connection ends once everything is sent. */
  #ending = false;
  #lingering = false;
  #discardedBytes = 0;
  #paused = false;
  #advancing = false;
  #closed = false;
  /** The monotonic milliseconds since when the body's receiver has paused. Undefined if it has not. */
  #stoppedSinceMs: number | undefined;
  #deadlineMs: number;

  constructor(server: ConnectionServer, socket: ConnectionSocket) {
    this.#server = server;
    this.#clock = server.clock;
    this.#socket = socket;
    // The address is read now, because a reset connection has none, while earlier bytes are still to be read.
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

  /** Called with received bytes. */
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

  /** Called when the kernel may take bytes again. */
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

  /** Called when the socket is closed, by either side. */
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
    // The code that awaits the body runs later and finds that the client has left.
    body?.fail("incomplete", "The client left before all of the body was here.");
    this.#countUnread();
    if (!answered) request.clientLeft(reason);
  }

  /** Closes the connection and notifies only the code that works for it. Without `reason`, the client left. */
  destroy(reason?: GatewayError): void {
    if (!this.#closed) this.#socket.terminate();
    this.didClose(reason);
  }

  /** Closes the connection if no request is running or arriving. */
  closeIfIdle(): void {
    if (!this.#request && this.#input.length === 0 && !this.#ending && !this.#lingering) this.#socket.end();
  }

  /** Closes the connection immediately. Breaks off what is in progress, but does not reset a lingering connection. */
  close(): void {
    // A reset would make the kernels on both sides drop bytes of an answer that counts as delivered.
    if (this.#lingering && !this.#closed) this.#socket.end();
    else this.destroy();
  }

  /** Acts on the deadlines that are due at `nowMs`. */
  checkDeadline(nowMs: number): void {
    if (nowMs < this.#deadlineMs) {
      if (this.#lingering || this.#ending) this.regulate();
      return;
    }
    this.#deadlineMs = never;
    if (this.#lingering || this.behind) {
      this.close();
    } else if (this.#body?.isStopped) {
      // The receiver is slow, not the sender. `regulate` sets another deadline once the receiver continues.
    } else if (this.#body) {
      this.#body.fail("incomplete", "The body did not arrive in time.");
    } else if (this.#input.length > 0) {
      const seconds = Math.round(this.#server.limits.headMs / 1000);
      this.refuse(408, `The head of a request must be complete within ${seconds} seconds of its first byte.`);
    } else {
      this.#socket.end();
    }
  }

  /** Answers invalid input and accepts no request after it. */
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
    // A closed socket never takes any bytes, so nothing is kept.
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
    // Later calls for this request must not touch the socket.
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
    // A lingering close lets earlier bytes arrive, which a reset may overtake.
    if (looksComplete || this.behind) {
      this.destroy();
      return;
    }
    this.#keepsAlive = false;
    this.#finish();
  }

  /** Keeps bytes that the client did not take. If its memory account is full, the connection is broken off. */
  #keep(unsent: ConnectionOutput, bytes: Buffer, start: number, end: number): void {
    const refusal = unsent.keep(bytes, start, end);
    if (refusal) this.#destroySoon(refusal);
  }

  /** Breaks off after all current work on the answer. */
  #destroySoon(reason: GatewayError): void {
    queueMicrotask(() => this.destroy(reason));
  }

  /** Counts received bytes that no request has asked for. */
  #countUnread(): void {
    this.#countUnasked();
    const bytes = this.#input.length;
    // Bytes after a request are counted without refusal: the read-ahead limits them for each connection.
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

  /** Reports whether the kernel has not taken everything that was written. */
  get #sending(): boolean {
    return this.#gathered || this.behind;
  }

  /**
   * Enforces a minimum speed: a client that takes a few bytes now and then must not keep the waiting bytes in memory
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
      // If the client is behind, the deadline for sent bytes still applies.
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

  /** Begins the next request once possible, and continues while each is answered immediately. */
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

  /** Begins the next request, and returns whether there was one. Throws a HeadError. */
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
    // A worker answers in HTTP/1.1 whatever its client speaks, because the primary process must see where an answer
    // breaks off.
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

  /** Called when the kernel has everything that had to be sent before the next request or the end. */
  #sentAll(): void {
    if (this.#ending) this.#linger();
    else this.#finish();
  }

  /** Called when the kernel has the whole answer. */
  #finish(): void {
    const bodyPending = this.#body !== undefined;
    this.#forgetRequest();
    if (!this.#keepsAlive || bodyPending || this.#server.stopping) {
      this.#end();
      return;
    }
    this.#deadlineMs = this.#clock.monotonicMs() + this.#server.limits.idleMs;
    if (this.#input.length > 0 && !this.#advancing) {
      // The next request waits until the call that sent the previous answer returns, because its caller still has work
      // to do.
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

  /** Accepts no more requests, and closes once the written bytes have been delivered as far as possible. */
  #end(): void {
    this.#input.clear();
    this.#countUnread();
    this.#ending = true;
    if (!this.#sending && !this.#closed) this.#linger();
  }

  /**
   * Closes the sending side first and discards input for a while (RFC 9112, 9.6): closing while the client still sends
   * would reset the connection and could lose the answer.
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

  /** Pauses reading while more has arrived than the current request has asked for. */
  regulate(): void {
    const full = this.#request !== undefined && this.#isFull();
    if (full === this.#paused || this.#closed) return;
    this.#paused = full;
    if (full) this.#socket.pause();
    else this.#socket.resume();
    this.#countStopped();
  }

  /** Extends the deadline by the time for which the body's receiver was paused, which is not the sender's fault. */
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
