// A request at the node: its body arrives, an engine answers, and the answer is sent as far as the gateway has granted
// bytes.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { NodeAnswer, NodeHandler } from "./contract.ts";
import type { IncomingBody } from "./incoming-body.ts";
import { messageTypes, ProtocolError, pieceBytes } from "./messages.ts";
import { answerPayload, type RequestHead } from "./payloads.ts";
import type { Tabled } from "./stream-table.ts";

/** The part of the tunnel that a stream needs. */
export interface NodeStreamOwner {
  /** True while bodies must wait, because the connection cannot send more. */
  readonly behind: boolean;
  readonly handle: NodeHandler;
  /** Calls `proceed` of the stream when the connection can send again. */
  awaitDrain(stream: NodeStream): void;
  send(type: number, stream: number, payload?: Uint8Array): void;
  /** Called when the stream has ended. */
  over(stream: NodeStream): void;
  /** Called with an unexpected error of the engine or its body. */
  fault(error: unknown): void;
}

type Outcome = { error: unknown } | "complete";

export class NodeStream implements BodySink, Tabled<NodeStream> {
  readonly id: number;
  nextInTable: NodeStream | undefined = undefined;
  readonly body: IncomingBody;
  readonly #owner: NodeStreamOwner;
  readonly #head: RequestHead;
  readonly #cancellation = new Cancellation();
  #source: BodySource | undefined;
  /** Number of bytes that may be sent to the gateway. */
  #creditBytes: number;
  /** Bytes that may not be sent yet. Few, because the engine's body is paused meanwhile. */
  readonly #waiting: Uint8Array[] = [];
  #paused = false;
  #outcome: Outcome | undefined;
  #started = false;
  #over = false;

  constructor(id: number, owner: NodeStreamOwner, head: RequestHead, body: IncomingBody, creditBytes: number) {
    this.id = id;
    this.#owner = owner;
    this.#head = head;
    this.body = body;
    this.#creditBytes = creditBytes;
  }

  get started(): boolean {
    return this.#started;
  }

  /** Passes the request to an engine. Call this when the whole body has arrived. */
  start(): void {
    this.#started = true;
    void this.#run();
  }

  grant(bytes: number): void {
    if (this.#creditBytes + bytes > Number.MAX_SAFE_INTEGER) throw new ProtocolError("too much was granted");
    this.#creditBytes += bytes;
    this.proceed();
  }

  /** Stops the engine, because the gateway cancelled the request or the connection is gone. */
  cancel(reason?: unknown): void {
    if (this.#over) return;
    this.#finish();
    this.#cancellation.cancel(reason);
    this.#source?.cancel();
  }

  /** Ends the stream because the gateway violated the protocol. The gateway gets an error, and the engine stops. */
  stop(problem: string): void {
    if (this.#over) return;
    const failure = JSON.stringify({ code: "upstream_error", message: problem });
    this.#owner.send(messageTypes.fail, this.id, Buffer.from(failure));
    this.cancel(new ProtocolError(problem));
  }

  /** Sends waiting bytes as far as possible, then continues to read from the engine. */
  proceed(): void {
    while (!this.#over && this.#waiting.length > 0) {
      const [first] = this.#waiting;
      if (!first) return;
      const sent = this.#sendPiece(first);
      if (sent === 0) return;
      if (sent === first.byteLength) this.#waiting.shift();
      else this.#waiting[0] = first.subarray(sent);
    }
    if (this.#over) return;
    if (this.#outcome) this.#conclude(this.#outcome);
    else if (this.#paused) {
      this.#paused = false;
      this.#source?.resume();
    }
  }

  data(bytes: ByteSpan): void {
    if (this.#over || bytes.length === 0) return;
    let rest: Uint8Array = bytes.view;
    while (this.#waiting.length === 0 && rest.byteLength > 0) {
      const sent = this.#sendPiece(rest);
      if (sent === 0) break;
      rest = rest.subarray(sent);
    }
    if (rest.byteLength === 0 || this.#over) return;
    this.#waiting.push(rest);
    if (this.#paused) return;
    this.#paused = true;
    this.#source?.pause();
  }

  end(): void {
    this.#settle("complete");
  }

  /** Ends the stream with an error. Also used if the node cannot accept the request. */
  fail(error: unknown): void {
    this.#settle({ error });
  }

  async #run(): Promise<void> {
    const { length: _, ...head } = this.#head;
    const request = { ...head, body: ByteSpan.of(this.body.take()) };
    try {
      this.#begin(await this.#owner.handle(request, this.#cancellation));
    } catch (error) {
      this.fail(error);
    }
  }

  #begin({ status, headers, body }: NodeAnswer): void {
    if (this.#over) {
      body.cancel();
      return;
    }
    this.#source = body;
    this.#owner.send(messageTypes.head, this.id, Buffer.from(answerPayload(status, headers)));
    body.flow(this);
  }

  /** Sends a piece and returns its number of bytes; 0 if nothing may be sent now. */
  #sendPiece(bytes: Uint8Array): number {
    if (this.#owner.behind) {
      this.#owner.awaitDrain(this);
      return 0;
    }
    const length = Math.min(pieceBytes, this.#creditBytes, bytes.byteLength);
    if (length === 0) return 0;
    this.#creditBytes -= length;
    this.#owner.send(messageTypes.data, this.id, length === bytes.byteLength ? bytes : bytes.subarray(0, length));
    return length;
  }

  #settle(outcome: Outcome): void {
    if (this.#over || this.#outcome) return;
    this.#outcome = outcome;
    if (this.#waiting.length === 0) this.#conclude(outcome);
  }

  #conclude(outcome: Outcome): void {
    if (outcome === "complete") this.#owner.send(messageTypes.end, this.id);
    else this.#owner.send(messageTypes.fail, this.id, Buffer.from(this.#failure(outcome.error)));
    this.#finish();
  }

  #failure(error: unknown): string {
    if (error instanceof GatewayError) {
      const { code, message, detail } = error;
      return JSON.stringify({
        code,
        message: (detail === undefined ? message : `${message} (${detail})`).slice(0, 500),
      });
    }
    this.#owner.fault(error);
    return JSON.stringify({ code: "upstream_error", message: String(error).slice(0, 500) });
  }

  #finish(): void {
    this.#over = true;
    this.#waiting.length = 0;
    this.#owner.over(this);
  }
}
