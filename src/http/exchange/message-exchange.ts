// The context of a request that has no HTTP exchange of its own: a WebSocket message, or a background response. It has
// the open-request slot, the log line and the trace.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { elapsedMs } from "../../base/clock.ts";
import type { GatewayError } from "../../base/errors.ts";
import { actorOf, keyOf, type Principal } from "../../domain/principal.ts";
import type { HttpEnd } from "../../domain/usage/observer.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { HeaderLines } from "../../http1/message.ts";
import type { MessageKind, MessageRequest } from "../../inference/message-request.ts";
import type { OpenSlot } from "../../policy/open-requests.ts";
import { errorTable } from "../../wire/errors.ts";
import { clientClosedRequest } from "./errors.ts";
import { newRequestId } from "./request-id.ts";
import { everyRequest, levelOfLine } from "./request-line.ts";
import type { Exchange, SlotLender } from "./route.ts";
import type { HttpServerOptions } from "./server-options.ts";

/** Facts about the HTTP request that opened the connection or started the background work. */
interface CameWith {
  readonly kind: MessageKind;
  readonly requestId: string;
  readonly clientAddress: string;
  readonly method: string;
  readonly route: string;
  readonly headers: HeaderLines;
  /** The connection that lends its open-request slot to the message. */
  readonly lender?: SlotLender | undefined;
}

type Options = Pick<HttpServerOptions, "clock" | "log" | "observer" | "openRequests" | "requestLog" | "tracer">;

export class MessageExchange implements MessageRequest, HttpEnd {
  readonly requestId: string;
  readonly #kind: MessageKind;
  readonly method: string;
  readonly route: string;
  readonly line: Exchange["line"];
  status = 200;
  durationMs = 0;
  isOnLedger = false;
  trace: RequestTrace | undefined;
  readonly #headers: HeaderLines;
  readonly #lender: SlotLender | undefined;
  readonly #options: Options;
  readonly #startedMs: number;
  #slot: OpenSlot | undefined;
  #bufferedBytes = 0;

  constructor({ kind, requestId, clientAddress, method, route, headers, lender }: CameWith, options: Options) {
    this.#kind = kind;
    this.#lender = lender;
    this.requestId = kind === "background" ? requestId : newRequestId();
    this.method = method;
    this.route = route;
    this.#headers = headers;
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
    this.line = { id: this.requestId, client: clientAddress, method, route, [kind]: true };
  }

  by(principal: Principal): MemoryAccount {
    const { requestId, method, route } = this;
    const { openRequests, tracer, clock } = this.#options;
    const keyId = keyOf(principal).id;
    this.line["account"] = principal.account.id;
    this.line["key"] = keyId;
    const ageMs = elapsedMs(clock, this.#startedMs);
    const actorId = actorOf(principal).id;
    this.trace = tracer?.begin({ requestId, method, route, keyId, actorId, ageMs, headers: this.#headers });
    if (this.trace) this.line["trace_id"] = this.trace.id;
    this.#slot = this.#lender?.takeSlot() ?? openRequests.enter(principal);
    return this.#slot.memoryAccount;
  }

  hold(bytes: number): GatewayError | undefined {
    const refusal = this.#slot?.memoryAccount.take("requests", bytes);
    if (!refusal) this.#bufferedBytes += bytes;
    return refusal;
  }

  durationNow(): number {
    return elapsedMs(this.#options.clock, this.#startedMs);
  }

  finish(error?: GatewayError): void {
    const { line } = this;
    const { log, observer, requestLog } = this.#options;
    this.#giveUp((slot) => slot.release());
    this.durationMs = this.durationNow();
    if (error) {
      this.status = errorTable[error.code].status;
      line["code"] = error.code;
      if (error.detail !== undefined) line["detail"] = error.detail;
    }
    line["status"] = this.status;
    line["ms"] = Math.round(this.durationMs * 10) / 10;
    const level = levelOfLine(line, this.durationMs, requestLog?.() ?? everyRequest, Math.random);
    if (level !== undefined) log[level]("request", line);
    this.trace?.end(this.status, error?.code);
    // A background response is not counted here, because it was counted when its HTTP request ended.
    if (this.#kind === "websocket") observer?.httpEnded(this);
  }

  clientLeft(): void {
    this.status = clientClosedRequest;
    this.finish();
  }

  leave(): void {
    const lender = this.#lender;
    this.#giveUp((slot) => (lender ? lender.returnSlot(slot) : slot.release()));
  }

  #giveUp(give: (slot: OpenSlot) => void): void {
    const slot = this.#slot;
    if (!slot) return;
    if (this.#bufferedBytes > 0) slot.memoryAccount.release("requests", this.#bufferedBytes);
    this.#bufferedBytes = 0;
    this.#slot = undefined;
    give(slot);
  }
}
