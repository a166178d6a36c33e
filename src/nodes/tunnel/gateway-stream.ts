// A request that the gateway sends to a node: its body, the promise of its answer, and its timeouts.

import { type MemoryAccount, NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { EngineResponse } from "../../domain/models/engine.ts";
import { type AnswerOwner, IncomingAnswer } from "./incoming-answer.ts";
import type { OutgoingBody } from "./outgoing-body.ts";
import type { AnswerHead, Failure } from "./payloads.ts";
import type { Tabled } from "./stream-table.ts";

/** The part of the tunnel that a stream needs. */
export interface StreamOwner {
  /** The name for the log. */
  readonly name: string;
  grant(stream: GatewayStream, bytes: number): void;
  /** Tells the node to stop, and removes the stream. */
  cancel(stream: GatewayStream): void;
}

export interface StreamTimes {
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
}

export class GatewayStream implements AnswerOwner, Tabled<GatewayStream> {
  readonly id: number;
  nextInTable: GatewayStream | undefined = undefined;
  readonly body: OutgoingBody;
  readonly answer: IncomingAnswer;
  readonly response: Promise<EngineResponse>;
  readonly #owner: StreamOwner;
  readonly #times: StreamTimes;
  readonly #cancellation: Cancellation;
  readonly #onCancel = () => this.#cancelled();
  readonly #answerByMs: number;
  #settle: { resolve(response: EngineResponse): void; reject(error: unknown): void } | undefined;

  constructor(
    id: number,
    owner: StreamOwner,
    body: OutgoingBody,
    times: StreamTimes,
    windowBytes: number,
    memoryAccount: MemoryAccount,
    cancellation: Cancellation,
  ) {
    this.id = id;
    this.body = body;
    this.answer = new IncomingAnswer(this, windowBytes, memoryAccount);
    this.#owner = owner;
    this.#times = times;
    this.#cancellation = cancellation;
    this.#answerByMs = exactMs() + times.firstByteTimeoutMs;
    this.response = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    cancellation.onCancel(this.#onCancel);
  }

  /** True until the node's answer has begun. */
  get waits(): boolean {
    return this.#settle !== undefined;
  }

  /** Called when the node's answer begins. Resolves the promise of the answer. */
  began({ status, headers }: AnswerHead): void {
    const settle = this.#end();
    settle?.resolve({ status, headers: { get: (name) => headers.get(name) ?? null }, body: this.answer });
  }

  complete(): void {
    this.answer.complete();
  }

  /** Fails the request: its response if the answer has not begun, otherwise the answer's body. */
  fail(error: unknown): void {
    const settle = this.#end();
    if (settle) settle.reject(error);
    else this.answer.fail(error);
  }

  /** Fails the request with the error that the node reported. */
  failedAtNode({ code, message }: Failure): void {
    const detail = `${this.#owner.name}: ${message}`;
    // Do not pass the node's text to the client, because the node may be wrong or malicious.
    if (code === "upstream_timeout") {
      this.fail(new GatewayError(code, "The model server of the node did not answer in time.", { detail }));
    } else if (!this.waits && (code === "service_unavailable" || code === "rate_limit_exceeded")) {
      // After an answer has begun, the node reports these codes only if its buffers are full.
      this.fail(
        new NoRoomError("service_unavailable", "The node holds as many bytes of answers as it may at the moment.", {
          detail,
          retryAfterSeconds: 2,
        }),
      );
    } else if (code === "service_unavailable") {
      this.fail(new GatewayError(code, "The node takes no more requests for now.", { detail, retryAfterSeconds: 1 }));
    } else if (code === "request_too_large" && this.waits) {
      // The request is at fault, not the node, so the node must not be suspended.
      this.fail(new GatewayError(code, "The request is too large for this model.", { detail }));
    } else {
      const when = this.waits ? "could not answer" : "broke off its answer";
      this.fail(new GatewayError("upstream_error", `The node ${when}.`, { detail }));
    }
  }

  /** Fails the request if a timeout has passed. */
  checkDeadline(nowMs: number): void {
    const { firstByteTimeoutMs, idleTimeoutMs } = this.#times;
    if (this.waits && nowMs >= this.#answerByMs) {
      this.#expire(`The node did not answer within ${Math.round(firstByteTimeoutMs / 1000)} s.`);
    } else if (nowMs - this.answer.waitingSinceMs >= idleTimeoutMs) {
      this.#expire("The node stopped sending in the middle of the answer.");
    }
  }

  grant(bytes: number): void {
    this.#owner.grant(this, bytes);
  }

  /** Called when the reader of the answer cancels. */
  cancelled(): void {
    this.#owner.cancel(this);
  }

  #expire(message: string): void {
    this.#owner.cancel(this);
    this.fail(new GatewayError("upstream_timeout", message, { detail: this.#owner.name }));
  }

  /** Called when the request is cancelled. Has no effect after the answer has begun. */
  #cancelled(): void {
    const settle = this.#end();
    if (!settle) return;
    this.#owner.cancel(this);
    settle.reject(this.#cancellation.reason);
  }

  #end() {
    const settle = this.#settle;
    this.#settle = undefined;
    if (settle) this.#cancellation.off(this.#onCancel);
    return settle;
  }
}
