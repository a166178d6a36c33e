// A request as the code that handles it sees it. Once it is answered, its methods no longer affect the connection.
import { type BodySink, type BodySource, bodyOf } from "../../base/bytes/body-source.ts";
import { bufferedBytes, lastingRefusal, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan, noBytes } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { FieldLines, HttpVersion, RequestHead } from "../head.ts";
import type { OverListener, PassableRequest } from "../message.ts";
import { type BodyMemoryAccount, ConnectionBody, tooLarge } from "./connection-body.ts";

/** The methods of the connection that a request uses. */
export interface RequestConnection {
  readonly peer: string;
  /** Called when a handler needs the rest of the body. */
  awaitBody(): void;
  sendContinue(): void;
  /** Called when reading from the connection may have to pause or resume. */
  regulate(): void;
}

export class ConnectionRequest implements PassableRequest, BodyMemoryAccount {
  readonly method: string;
  readonly version: HttpVersion;
  readonly target: string;
  readonly headers: FieldLines;
  readonly hasBody: boolean;
  memoryAccount: MemoryAccount = bufferedBytes.visitors;
  readonly #connection: RequestConnection;
  readonly expectsContinue: boolean;
  #body: ByteSpan | ConnectionBody | undefined;
  /** The body, if it is delivered as it arrives. */
  #passed: ConnectionBody | undefined;
  #asked = false;
  #bodyRead: boolean;
  /**
   * The number of bytes that count on the memory account until the request ends. They stay until then, because the body
   * may be needed again.
   */
  #bufferedBytes = 0;
  /**
   * The memory account on which the bytes count. They must be released from this account, because `memoryAccount` may
   * have changed since.
   */
  #bodyAccount: MemoryAccount | undefined;
  #clientGone: Cancellation | undefined;
  #isClientGone = false;
  #goneReason: GatewayError | undefined;
  #isOver = false;
  #over: OverListener | undefined;

  /** `body` is undefined if there is no body, and a ByteSpan if the body has arrived completely. */
  constructor(
    connection: RequestConnection,
    head: RequestHead,
    body: ByteSpan | ConnectionBody | undefined,
    expectsContinue: boolean,
  ) {
    this.method = head.method;
    this.version = head.version;
    this.target = head.target;
    this.headers = head.headers;
    this.hasBody = body !== undefined;
    this.#connection = connection;
    this.#body = body;
    this.#bodyRead = body === undefined;
    this.expectsContinue = expectsContinue;
  }

  get peer(): string {
    return this.#connection.peer;
  }

  get bodyRead(): boolean {
    return this.#bodyRead || this.#passed?.complete === true;
  }

  get clientGone(): Cancellation {
    if (!this.#clientGone) {
      this.#clientGone = new Cancellation();
      if (this.#isClientGone) this.#clientGone.cancel(this.#goneReason);
    }
    return this.#clientGone;
  }

  get bodyIsHere(): boolean {
    return this.#body === undefined || this.#body instanceof ByteSpan || this.#body.complete;
  }

  readBody(maxBytes: number): ByteSpan | Promise<ByteSpan> {
    const body = this.#takeBody();
    if (body === undefined || body instanceof ByteSpan) {
      if (body === undefined) return noBytes;
      if (body.length > maxBytes) throw tooLarge(maxBytes);
      const refusal = this.hold(body.length);
      if (refusal) throw refusal;
      this.#bodyRead = true;
      return body;
    }
    return this.#readIncoming(body, maxBytes);
  }

  fieldLines(without: ReadonlySet<string>): string {
    return this.headers.lines(without);
  }

  sendContinue(): void {
    if (this.expectsContinue && !this.#isOver) this.#connection.sendContinue();
  }

  passBody(): BodySource {
    const body = this.#takeBody();
    if (body instanceof ConnectionBody) {
      this.#passed = body;
      return new PassedBody(body, this.#connection);
    }
    this.#bodyRead = true;
    return bodyOf((body ?? noBytes).view);
  }

  flowBody(maxBytes: number): BodySource {
    const body = this.#takeBody();
    if (body instanceof ConnectionBody) {
      this.#passed = body;
      return new FlowedBody(body, this.#connection, maxBytes, this.expectsContinue);
    }
    const bytes = body ?? noBytes;
    if (bytes.length > maxBytes) throw tooLarge(maxBytes);
    this.#bodyRead = true;
    return bodyOf(bytes.view);
  }

  onOver(listener: OverListener): void {
    if (this.#isOver) listener.over();
    else this.#over = listener;
  }

  /** Called when the request was answered, the client left, or the connection was upgraded. */
  over(): void {
    if (this.#bufferedBytes > 0) this.hold(-this.#bufferedBytes);
    this.#isOver = true;
    this.#over?.over();
  }

  hold(bytes: number): GatewayError | undefined {
    // An ended request has released all its bytes, so no more bytes may count.
    if (this.#isOver) return bytes > 0 ? new GatewayError("service_unavailable", "The request is over.") : undefined;
    const memoryAccount = this.#bodyAccount ?? this.memoryAccount;
    if (bytes < 0) {
      memoryAccount.release("requests", -bytes);
    } else {
      const refusal = memoryAccount.take("requests", bytes);
      if (refusal) return lastingRefusal(refusal, this.#bufferedBytes + bytes);
    }
    this.#bufferedBytes += bytes;
    this.#bodyAccount = this.#bufferedBytes > 0 ? memoryAccount : undefined;
    return undefined;
  }

  /** Cancels `clientGone`. `reason` is set only if the server ends the request, not the client. */
  clientLeft(reason?: GatewayError): void {
    this.#isClientGone = true;
    this.#goneReason = reason;
    this.#clientGone?.cancel(reason);
  }

  #takeBody(): ByteSpan | ConnectionBody | undefined {
    if (this.#asked) throw new Error("The body of a request is read once.");
    this.#asked = true;
    const body = this.#body;
    this.#body = undefined;
    return body;
  }

  #readIncoming(body: ConnectionBody, maxBytes: number): ByteSpan | Promise<ByteSpan> {
    body.setMemoryAccount(this);
    const bytes = body.read(maxBytes);
    if (bytes instanceof ByteSpan) {
      this.#bodyRead = true;
      return bytes;
    }
    // A client that has begun to send the body does not wait for 100 Continue (RFC 9110, 10.1.1).
    if (this.expectsContinue && body.receivedBytes === 0) this.#connection.sendContinue();
    this.#connection.awaitBody();
    return bytes.then((all) => {
      this.#bodyRead = true;
      return all;
    });
  }
}

class PassedBody implements BodySource {
  protected readonly body: ConnectionBody;
  protected readonly connection: RequestConnection;

  constructor(body: ConnectionBody, connection: RequestConnection) {
    this.body = body;
    this.connection = connection;
  }

  flow(sink: BodySink): void {
    this.body.passTo(sink);
    this.connection.regulate();
  }

  pause(): void {
    this.body.stop();
    this.connection.regulate();
  }

  resume(): void {
    this.body.go();
    this.connection.regulate();
  }

  /**
   * Stops reading the body. The connection will be closed after the answer, because the body was not read completely.
   */
  cancel(): void {
    this.pause();
  }
}

/** Delivers the decoded body as it arrives. The connection enforces a minimum speed of the client. */
class FlowedBody extends PassedBody {
  readonly #maxBytes: number;
  readonly #expectsContinue: boolean;

  constructor(body: ConnectionBody, connection: RequestConnection, maxBytes: number, expectsContinue: boolean) {
    super(body, connection);
    this.#maxBytes = maxBytes;
    this.#expectsContinue = expectsContinue;
  }

  override flow(sink: BodySink): void {
    // A client that has begun to send the body does not wait for 100 Continue (RFC 9110, 10.1.1).
    const mayWait = this.#expectsContinue && this.body.receivedBytes === 0;
    this.body.flowTo(sink, this.#maxBytes);
    if (!this.body.isFlowing) return;
    if (mayWait) this.connection.sendContinue();
    this.connection.awaitBody();
  }
}
