// One connection of the client: sends a request, reads its answer, and tells whether another request may follow.
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

/** The events of a connection, for its pool. */
export interface ConnectionOwner {
  /**
   * Called when the connection is ready for another request. The server announced to keep it open for `announcedMs`.
   */
  free(connection: ClientConnection, announcedMs: number | undefined): void;
  /** Called once, when the connection is closed or useless. */
  gone(connection: ClientConnection): void;
  /** Called if the server certainly did not process the request, so that it may be sent again on another connection. */
  again(exchange: ClientExchange): void;
}

/** The methods in use whose requests may be sent twice (RFC 9110, 9.2.2). */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD"]);

export class ClientConnection implements Carrier, IndexedItem, BulkTaker, UploadConnection {
  setIndex = noIndex;
  exchange: ClientExchange | undefined;
  /** Monotonic milliseconds at which `expire` is due. */
  deadline: number;
  readonly #owner: ConnectionOwner;
  readonly #reader = new ResponseReader();
  #socket: Socket<ClientConnection> | undefined;
  #open = false;
  #gone = false;
  /** True if an earlier answer was received on this connection. */
  #reused = false;
  /** The bytes of the request that the kernel has not taken yet. */
  #unsent: Uint8Array[] | undefined;
  /** The part of the request that is sent while it arrives. */
  #upload: RequestUpload | undefined;
  #sentAny = false;
  #receivedAny = false;
  #paused = false;
  /** Set once a large amount arrived at one time. */
  #bulk: BulkInput | undefined;
  /** Set if the socket was closed while received bytes were still unread. */
  #closedBehind: { error: Error | undefined } | undefined;
  /** True while bytes are being read; the next deadline is known afterwards. */
  #reading = false;

  /** Creates the connection before it is open. `deadline` is the time limit for opening it. */
  constructor(owner: ConnectionOwner, exchange: ClientExchange, deadline: number) {
    this.#owner = owner;
    this.deadline = deadline;
    this.#carry(exchange);
  }

  get connecting(): boolean {
    return !(this.#open || this.#gone);
  }

  /** Reports whether the connection may be written to, as far as is known. */
  get usable(): boolean {
    return this.#open && !this.#gone && this.#socket?.readyState === 1;
  }

  /** Called with the socket, before anything may be written. */
  attached(socket: Socket<ClientConnection>): void {
    this.#socket = socket;
    if (this.#gone) socket.terminate();
  }

  /** Called when the server is connected and, with TLS, its certificate is verified. */
  opened(): void {
    const socket = this.#socket;
    if (!socket || this.#open || this.#gone) return;
    this.#open = true;
    // An unused connection must not keep the process alive; the pool does so during a request.
    socket.unref();
    socket.setNoDelay(true);
    probePeer(socket);
    if (this.exchange) this.#send(this.exchange);
    else this.#owner.free(this, undefined);
  }

  /** Sends a request on a free connection. */
  take(exchange: ClientExchange): void {
    this.#carry(exchange);
    this.#send(exchange);
  }

  connectFailed(error: unknown): void {
    this.#fail(new ClientError("connect", connectProblem(error), { cause: error }));
  }

  received(bytes: Buffer): void {
    // Bytes without a request would be taken for the answer to the next one, so the connection is closed.
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
    // Bytes without a request would be taken for the answer to the next one, so the connection is closed.
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
      // The receiver of the bytes may have cancelled the exchange.
      if (this.exchange !== exchange) return;
      if (complete) this.#complete(exchange);
      else if (exchange.flowing) this.#heard(exchange);
      // The answer has no receiver yet: received bytes are buffered, and reading pauses.
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
    // The body of a forwarded request broke off; the server sees that it is incomplete and may still answer.
    if (this.exchange?.request?.content) this.#fail(error);
  }

  sentAll(): void {
    // After a protocol switch only the end of the connection follows.
    if (this.#reader.answer?.head.status === 101 && !this.#unsent) this.#destroy();
  }

  /** Called when the socket is closed, by either side. */
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

  /** Called when the deadline has passed. */
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
    // The check runs after all current work on received bytes: if reading has resumed by then, nothing is buffered.
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
    // A connection that is being opened can serve the next request.
    if (this.connecting) this.exchange = undefined;
    else this.#destroy();
  }

  /** Closes the connection and fails its running exchange. */
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

  /** Restarts the wait for an answer at each progress of `content`, so that it begins when everything was sent. */
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

  /** Reports whether the request may be sent again: none of it reached the server, or sending it twice is harmless. */
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
  // Bun also reports ECONNREFUSED if there is no descriptor for the socket.
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
