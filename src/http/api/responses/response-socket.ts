// The WebSocket of the Responses API. Each message of the client requests a response, whose events the gateway sends as
// messages.

import type { MemoryAccount } from "../../../base/bytes/buffered-bytes.ts";
import type { MessageLinkListener } from "../../../base/bytes/message-link.ts";
import { Cancellation } from "../../../base/cancellation.ts";
import { type ErrorCode, GatewayError, invalidRequest } from "../../../base/errors.ts";
import { noIndex } from "../../../base/indexed-set.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { MessageRequest } from "../../../inference/message-request.ts";
import type { Stoppable } from "../../../inference/stopping.ts";
import type { LongConnectionEnd, LongConnections, OpenLongConnection } from "../../../policy/long-connections.ts";
import type { OpenRequests, OpenSlot } from "../../../policy/open-requests.ts";
import { RecentResponses } from "../../../responses/recent-responses.ts";
import { closeCodes } from "../../../websocket/frame-format.ts";
import { checkUpgradeRequest } from "../../../websocket/handshake.ts";
import { WebSocketLink } from "../../../websocket/websocket-link.ts";
import { errorTable, renderError, toGatewayError } from "../../../wire/errors.ts";
import type { Exchange, SlotLender, UpgradeAnswer } from "../../exchange/route.ts";
import type { InferenceRouteDeps } from "../inference-answer.ts";
import { noteRefused } from "../usage/refused-inference.ts";
import { parseMessage, readMessage, streamIdOf } from "./socket-message.ts";
import { answerMessage, maxUnsentBytes, type SocketStream } from "./socket-request.ts";

/** Maximum messages that wait while a response is being generated. */
const maxWaiting = 8;
/** Maximum bytes of error messages that the client has not read. If it still sends messages, it is disconnected. */
const maxUnreadBytes = 1024 * 1024;

/** Errors that close the connection, because its credential is no longer valid. */
const endsConnection: ReadonlySet<string> = new Set<ErrorCode>(["invalid_api_key", "token_expired"]);

export interface ResponseSocketDeps extends InferenceRouteDeps {
  openRequests: Pick<OpenRequests, "enter">;
  longConnections: Pick<LongConnections, "open">;
}

export interface ResponseSocketOptions {
  deps: ResponseSocketDeps;
  /** Creates the request context of a message, which uses the connection's open-request slot. */
  message(lender: SlotLender): MessageRequest;
  /** The caller that opened the connection. */
  opener: Principal;
  /** Authenticates the connection's credential again. Throws if the credential is no longer valid. */
  principal(): Principal | Promise<Principal>;
  /** Rejects if the credential no longer permits the connection. */
  holds(): Promise<void>;
  memoryAccount: MemoryAccount;
  /** The header `x-headrace-tags` of the request that opened the connection. */
  tagHeader: string | null;
  priorityHeader: string | null;
  cacheHeader: string | null;
}

/**
 * Accepts a WebSocket connection. Throws `invalid_request` for any other request, and `rate_limit_exceeded` or
 * `service_unavailable` if there are too many connections.
 */
export function upgradeToResponses(exchange: Exchange, options: ResponseSocketOptions): UpgradeAnswer {
  const checked = checkUpgradeRequest(exchange.req, undefined);
  if ("problem" in checked) {
    Object.assign(exchange.answerHeaders, checked.headers);
    throw invalidRequest(checked.problem);
  }
  const maxMessageBytes = options.deps.requestLimits().bodyBytes;
  const socket = new ResponseSocket(options);
  return {
    status: 101,
    headers: checked.headers,
    upgrade(channel) {
      new WebSocketLink(channel, {
        role: "server",
        kind: "text",
        maxMessageBytes,
        memoryAccount: options.memoryAccount,
        listen: (link) => socket.begin(link),
      });
    },
    abandoned: () => socket.closed(),
  };
}

/** Runs responses one after the other, in the order of their messages. */
class ResponseSocket implements MessageLinkListener, SlotLender, Stoppable {
  setIndex = noIndex;
  #link!: WebSocketLink;
  readonly #options: ResponseSocketOptions;
  readonly #clientGone = new Cancellation();
  readonly #connection: OpenLongConnection;
  /**
   * The connection's slot among the key's open requests. The requests of its messages use this slot, one after another.
   */
  readonly #slot: OpenSlot;
  #isSlotLent = false;
  readonly #recent: RecentResponses;
  /** Messages that wait for their turn. Their bytes count on the connection's memory account. */
  readonly #waiting: Buffer[] = [];
  #stream: SocketStream | undefined;
  #busy = false;

  constructor(options: ResponseSocketOptions) {
    this.#options = options;
    this.#recent = new RecentResponses(options.memoryAccount);
    const { deps, opener } = options;
    this.#connection = deps.longConnections.open({
      kind: "responseSocket",
      principal: opener,
      watch: {
        holds: () => options.holds(),
        isBusy: () => this.#busy,
        end: (reason, error) => this.#end(reason, error),
      },
    });
    try {
      this.#slot = deps.openRequests.enter(opener);
    } catch (error) {
      this.#connection.release();
      throw error;
    }
  }

  begin(link: WebSocketLink): this {
    this.#link = link;
    this.#options.deps.stopping.add(this);
    return this;
  }

  takeSlot(): OpenSlot | undefined {
    if (this.#isSlotLent || this.#clientGone.cancelled) return undefined;
    this.#isSlotLent = true;
    return { memoryAccount: this.#slot.memoryAccount, release: () => this.#slotReturned() };
  }

  returnSlot(slot: OpenSlot): void {
    slot.release();
  }

  /** Closes the connection when the server stops. During a response this is postponed until the response has ended. */
  stop(): void {
    if (!this.#busy) this.#link.close(closeCodes.goingAway, "the server is being stopped");
  }

  message(bytes: Buffer): void {
    this.#connection.touch();
    const refusal =
      this.#waiting.length >= maxWaiting ? tooManyWait() : this.#options.memoryAccount.take("requests", bytes.length);
    if (refusal) {
      this.#fail(refusal, undefined);
      return;
    }
    this.#waiting.push(bytes);
    this.#next();
  }

  drained(): void {
    this.#stream?.onDrain?.();
    this.#next();
  }

  closed(): void {
    if (this.#clientGone.cancelled) return;
    this.#connection.release();
    this.#options.deps.stopping.remove(this);
    for (const { length } of this.#waiting.splice(0)) this.#options.memoryAccount.release("requests", length);
    this.#clientGone.cancel();
    // Ends the stream without sending anything, because the client has left.
    this.#stream?.over();
    this.#recent.release();
    if (!this.#isSlotLent) this.#slot.release();
  }

  #slotReturned(): void {
    if (!this.#isSlotLent) return;
    this.#isSlotLent = false;
    if (this.#clientGone.cancelled) this.#slot.release();
  }

  #end(reason: LongConnectionEnd, error: GatewayError): void {
    if (reason === "credential") {
      this.#fail(error, undefined);
      this.#link.close(closeCodes.policyViolation, "the credential has ended");
      return;
    }
    const { message } = error;
    this.#send({ status: 400, error: { code: "websocket_connection_limit_reached", message } });
    this.#link.close(closeCodes.normal, reason === "idle" ? "no message came for too long" : "an hour is over");
  }

  #next(): void {
    if (this.#busy || this.#clientGone.cancelled) return;
    // If the client does not read its answers, no further message is processed for now.
    if (this.#link.unsentBytes > maxUnsentBytes) return;
    const bytes = this.#waiting.shift();
    if (!bytes) return;
    this.#busy = true;
    const { deps } = this.#options;
    void this.#answer(bytes).finally(() => {
      this.#options.memoryAccount.release("requests", bytes.length);
      this.#busy = false;
      this.#stream = undefined;
      this.#connection.touch();
      if (deps.stopping.begun) this.stop();
      this.#next();
    });
  }

  /** Answers one message. Never rejects. */
  async #answer(bytes: Buffer): Promise<void> {
    const { deps, tagHeader, priorityHeader, cacheHeader } = this.#options;
    const exchange = this.#options.message(this);
    let principal: Principal | undefined;
    let streamId: string | undefined;
    try {
      principal = await this.#options.principal();
      const memoryAccount = exchange.by(principal);
      const message = parseMessage(bytes);
      streamId = streamIdOf(message);
      const fault = await answerMessage(
        readMessage(message),
        {
          ...{ exchange, principal, memoryAccount, streamId, tagHeader, priorityHeader, cacheHeader },
          ...{ clientGone: this.#clientGone, recent: this.#recent, link: this.#link },
          begun: (stream) => {
            this.#stream = stream;
          },
        },
        deps,
      );
      exchange.finish(fault);
    } catch (thrown) {
      if (this.#clientGone.cancelled && !(this.#clientGone.reason instanceof GatewayError)) {
        exchange.clientLeft();
        return;
      }
      const error = toGatewayError(thrown);
      if (principal && !exchange.isOnLedger) {
        noteRefused("response", exchange, principal, error, exchange.durationNow(), deps);
      }
      exchange.finish(error);
      this.#fail(error, streamId);
      if (endsConnection.has(error.code)) this.#link.close(closeCodes.policyViolation, "the credential has ended");
    } finally {
      // If the connection closed during this answer, the responses that this answer stored are released here.
      if (this.#clientGone.cancelled) this.#recent.release();
    }
  }

  #fail(error: GatewayError, streamId: string | undefined): void {
    const { status } = errorTable[error.code];
    const stream = streamId === undefined ? {} : { stream_id: streamId };
    this.#send({ ...stream, status, ...(JSON.parse(renderError(error)) as object) });
  }

  #send(members: object): void {
    if (this.#link.unsentBytes > maxUnreadBytes) {
      this.#link.terminate();
      return;
    }
    this.#link.send(Buffer.from(JSON.stringify({ type: "error", ...members })));
  }
}

function tooManyWait(): GatewayError {
  return new GatewayError(
    "rate_limit_exceeded",
    `${maxWaiting} messages wait for this connection's responses already.`,
    { shouldRetry: true },
  );
}
