// One connection of the HTTP client: sends a request, reads the answer, and reports whether it can be reused.
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import type { Socket } from "bun";
import type { BodySource } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { BulkInput, type BulkTaker, sliceBytes } from "../../base/bytes/bulk-input.ts";
import { exactMs, monotonicMs } from "../../base/clock.ts";
import { type IndexedItem, noIndex } from "../../base/indexed-set.ts";
import { HeadError } from "../head.ts";
import { probePeer } from "../probe-peer.ts";
import { ClientError, type ClientFault } from "./client-contract.ts";
import type { Carrier, ClientExchange } from "./client-exchange.ts";
import { writePieces, writeRequest } from "./request-bytes.ts";
import { RequestUpload, type UploadConnection } from "./request-upload.ts";
import { ResponseReader } from "./response-reader.ts";

/** The pool's methods that a connection calls. */
export interface ConnectionOwner {
  /** Called when the connection can be reused. `announcedMs` is the keep-alive timeout that the server announced. */
  free(connection: ClientConnection, announcedMs: number | undefined): void;
  /** Called once, when the connection is closed or unusable. */
  gone(connection: ClientConnection): void;
  /** Called if the connection broke and the request may be sent again on another connection. */
  again(exchange: ClientExchange): void;
}

/** The methods whose requests may be sent twice (RFC 9110, 9.2.2). */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD"]);

export class ClientConnection implements Carrier, IndexedItem, BulkTaker, UploadConnection {
  setIndex = noIndex;
  exchange: ClientExchange | undefined;
  /** Time in monotonic milliseconds at which the pool calls `expire`. */
  deadline: number;
  readonly #owner: ConnectionOwner;
  readonly #reader = new ResponseReader();
  #socket: Socket<ClientConnection> | undefined;
  #open = false;
  #gone = false;
  /** True if this connection has already delivered an answer. */
  #reused = false;
  /** The bytes of the request that the kernel has not accepted yet. */
  #unsent: Uint8Array[] | undefined;
  /** Sends the body or other bytes that arrive after the request's headers. */
  #upload: RequestUpload | undefined;
  #sentAny = false;
  #receivedAny = false;
  #paused = false;
  /** Reads received bytes in slices. Set once a large amount arrived at once. */
  #bulk: BulkInput | undefined;
  /** Set if the socket was closed while received bytes were still unread. */
  #closedBehind: { error: Error | undefined } | undefined;
  /** True while received bytes are being processed. The deadline is set afterwards. */
  #reading = false;

  /** Creates a connection that is being opened. `deadline` limits the time for that. */
  constructor(owner: ConnectionOwner, exchange: ClientExchange, deadline: number) {
    this.#owner = owner;
    this.deadline = deadline;
    this.#carry(exchange);
  }

  get connecting(): boolean {
    return !(this.#open || this.#gone);
  }

  /** Reports whether a request can probably be written to the socket. */
  get usable(): boolean {
    return this.#open && !this.#gone && this.#socket?.readyState === 1;
  }

  /** Called with the socket as soon as it exists. Nothing may be written before `opened` is called. */
  attached(socket: Socket<ClientConnection>): void {
    this.#socket = socket;
    if (this.#gone) socket.terminate();
  }

  /** Called when the connection is open and, with TLS, the certificate is verified. */
  opened(): void {
    const socket = this.#socket;
    if (!socket || this.#open || this.#gone) return;
    this.#open = true;
    // An idle connection must not keep the process alive. While a request is running, the pool's timer keeps it alive.
    socket.unref();
    socket.setNoDelay(true);
    probePeer(socket);
    if (this.exchange) this.#send(this.exchange);
    else this.#owner.free(this, undefined);
  }

  /** Sends a request on this idle connection. */
  take(exchange: ClientExchange): void {
    this.#carry(exchange);
    this.#send(exchange);
  }

  connectFailed(error: unknown): void {
    this.#fail(new ClientError("connect", connectProblem(error), { cause: error }));
  }

  received(bytes: Buffer): void {
    // If no request is running, the connection is closed, because unexpected bytes would be taken for the next answer.
    if (!this.exchange) {
      this.#destroy();
      return;
    }
    if (bytes.length <= sliceBytes && !this.#paused && this.#bulk?.waits !== true) {
      this.#read(bytes);
      return;
    }
    if (!this.#bulk) {
      this.#bulk = new BulkInput(this);
      if (this.#paused) this.#bulk.stop(this.exchange.memoryAccount);
    }
    const refusal = this.#bulk.add(bytes);
    if (refusal) this.#fail(refusal);
  }

  takeSlice(bytes: Buffer): void {
    this.#read(bytes);
  }

  hush(): void {
    this.#socket?.pause();
  }

  unhush(): void {
    const behind = this.#closedBehind;
    if (behind) this.closed(behind.error);
    else if (!this.#paused && !this.#gone) this.#socket?.resume();
  }

  #read(bytes: Buffer): void {
    const { exchange } = this;
    // If no request is running, the connection is closed, because unexpected bytes would be taken for the next answer.
    if (!exchange) {
      this.#destroy();
      return;
    }
    this.#receivedAny = true;
    this.#reading = true;
    try {
      const began = this.#reader.answer !== undefined;
      const complete = this.#reader.read(bytes, exchange);
      this.#reading = false;
      // The code that received the bytes may have cancelled the request.
      if (this.exchange !== exchange) return;
      if (complete) this.#complete(exchange);
      else if (exchange.flowing) this.#heard(exchange);
      // If no code reads the body yet, the body's bytes are buffered, and reading from the socket pauses.
      else if (began) this.pause();
      else if (this.#reader.answer) this.deadline = Number.POSITIVE_INFINITY;
    } catch (error) {
      this.#reading = false;
      this.#fail(error instanceof HeadError ? this.#fault("malformed", error.message, error) : error);
    }
  }

  drained(): void {
    const unsent = this.#unsent;
    if (!unsent || !this.#socket) return;
    if (writePieces(this.#socket, unsent) > 0) {
      this.#sentAny = true;
      this.#tookSome();
    }
    if (unsent.length > 0) return;
    this.#unsent = undefined;
    if (this.#upload?.ended) this.sentAll();
    else this.#upload?.drained();
  }

  upload(source: BodySource): void {
    this.#upload = new RequestUpload(source, this);
    this.#upload.begin();
  }

  sendMore(bytes: Buffer): boolean {
    if (this.#gone || !this.#socket) return true;
    if (!this.#unsent) {
      const taken = Math.max(0, this.#socket.write(bytes));
      if (taken > 0) this.#tookSome();
      if (taken === bytes.length) return true;
      this.#unsent = [bytes.subarray(taken)];
    } else {
      this.#unsent.push(bytes);
    }
    return false;
  }

  sentInPart(error: unknown): void {
    // If a forwarded request breaks off, the server notices this and may still answer, so only requests with `content`
    // fail here.
    if (this.exchange?.request?.content) this.#fail(error);
  }

  sentAll(): void {
    // After a protocol switch, the connection is closed when the client's bytes end.
    if (this.#reader.answer?.head.status === 101 && !this.#unsent) this.#destroy();
  }

  /** Called when either side has closed the socket. */
  closed(error: Error | undefined): void {
    if (this.#gone) return;
    if (this.#bulk?.waits) {
      this.#closedBehind = { error };
      return;
    }
    const { exchange, connecting } = this;
    this.#leave();
    if (!exchange) return;
    if (connecting) {
      exchange.fail(new ClientError("connect", "closed the connection while it was being opened", { cause: error }));
    } else if (this.#reader.endsWithConnection && !error) {
      exchange.end();
    } else if (this.#mayRepeat(exchange)) {
      exchange.retried = true;
      this.#owner.again(exchange);
    } else {
      const what = this.#reader.answer ? "in the middle of its answer" : "before it answered";
      exchange.fail(this.#fault("broken", `closed the connection ${what}`, error));
    }
  }

  /** Called by the pool when `deadline` has passed. */
  expire(): void {
    const { exchange } = this;
    if (!exchange) {
      this.#leave();
      this.#socket?.end();
    } else if (this.connecting && exactMs() < exchange.answerBy) {
      this.#fail(new ClientError("connect", "the connection could not be opened in time"));
    } else if (!this.#reader.answer) {
      this.#fail(new ClientError("first_byte_timeout", "no answer began in time"));
    } else {
      this.#fail(this.#fault("idle_timeout", "the answer fell silent"));
    }
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#socket?.pause();
    if (!this.#bulk) return;
    const refusal = this.#bulk.stop(this.exchange?.memoryAccount ?? bufferedBytes.bounded);
    if (!refusal) return;
    // The check happens in a microtask: if reading has resumed by then, nothing is buffered and nothing fails.
    queueMicrotask(() => {
      if (this.#paused) this.#fail(refusal);
    });
  }

  resume(): void {
    if (this.#paused) {
      this.#paused = false;
      this.#bulk?.goOn();
      if (this.#bulk?.isHushed !== true) this.#socket?.resume();
    }
    if (this.exchange) this.#heard(this.exchange);
  }

  abandon(): void {
    // A connection that is still being opened is kept for the next request.
    if (this.connecting) this.exchange = undefined;
    else this.#destroy();
  }

  /** Closes the connection. A running request fails. */
  shut(): void {
    this.#fail(this.#fault("closed", "the client was closed"));
  }

  #carry(exchange: ClientExchange): void {
    this.exchange = exchange;
    exchange.carrier = this;
  }

  #send(exchange: ClientExchange): void {
    const socket = this.#socket;
    const { request } = exchange;
    if (!socket || !request) return;
    this.deadline = exchange.answerBy;
    this.#sentAny = true;
    this.#receivedAny = false;
    const inPart = writeRequest(socket, exchange.head, request);
    if (inPart) {
      this.#sentAny = inPart.sent > 0;
      this.#unsent = inPart.unsent;
      if (inPart.sent < 0) {
        this.closed(undefined);
        socket.terminate();
        return;
      }
    }
    const upload = request.passed?.upload() ?? request.content?.open();
    if (upload) this.upload(upload);
  }

  /** Restarts the timeout for the answer if part of `content` was sent. */
  #tookSome(): void {
    const { exchange } = this;
    if (exchange?.request?.content && !this.#reader.answer) this.deadline = monotonicMs() + exchange.firstByteTimeoutMs;
  }

  #heard(exchange: ClientExchange): void {
    if (!this.#paused && !this.#reading) this.deadline = monotonicMs() + exchange.idleTimeoutMs;
  }

  #complete(exchange: ClientExchange): void {
    const { answer, overrun } = this.#reader;
    const { trailers } = this.#reader;
    const faultText = exchange.faultTrailer === undefined ? null : (trailers?.get(exchange.faultTrailer) ?? null);
    if (trailers) exchange.trailers = trailers;
    const isClean = !overrun && this.#bulk?.waits !== true && this.#upload?.ended !== false;
    if (answer?.keepsConnection && isClean && !this.#unsent && !this.#paused && this.usable) {
      this.exchange = undefined;
      this.#upload = undefined;
      this.#reader.next();
      this.#reused = true;
      this.#owner.free(this, answer.announcedMs);
    } else {
      this.#destroy();
    }
    if (faultText === null) exchange.end();
    else exchange.fail(new ClientError("told", faultText, { answerBegan: true }));
  }

  /**
   * Reports whether the request may be sent again on another connection. This connection must have been reused, and
   * nothing may have arrived on it. The request must be sent for the first time and must not have an upload. Finally,
   * either no byte of the request was sent, or its method is safe to repeat.
   */
  #mayRepeat(exchange: ClientExchange): boolean {
    if (!this.#reused || this.#receivedAny || exchange.retried || this.#upload) return false;
    return !this.#sentAny || repeatable.has(exchange.method);
  }

  #fault(fault: ClientFault, message: string, cause?: unknown): ClientError {
    return new ClientError(fault, message, { answerBegan: this.#reader.answer !== undefined, cause });
  }

  #fail(error: unknown): void {
    const { exchange } = this;
    this.#destroy();
    exchange?.fail(error);
  }

  #destroy(): void {
    if (this.#gone) return;
    this.#leave();
    this.#socket?.terminate();
  }

  #leave(): void {
    this.#gone = true;
    this.exchange = undefined;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#unsent = undefined;
    this.#upload?.cancel();
    this.#bulk?.clear();
    this.#owner.gone(this);
  }
}

function connectProblem(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  // Bun reports ECONNREFUSED even if the real cause is that the process has no free file descriptors.
  if (code === "ECONNREFUSED" && !hasDescriptors()) {
    return "no file descriptor is left for a connection; raise the limit of open files (ulimit -n)";
  }
  const message = error instanceof Error ? error.message : String(error);
  return typeof code === "string" && !message.includes(code) ? `${message} (${code})` : message;
}

function hasDescriptors(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return true;
  } catch {
    return false;
  }
}
