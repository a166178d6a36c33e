// The WebSocket of Responses: each message asks for a response, whose events come back as messages.
import type { Holder } from "../../../base/bytes/held-bytes.ts";
import type { MessageLinkListener } from "../../../base/bytes/message-link.ts";
import { Cancellation } from "../../../base/cancellation.ts";
import { type ErrorCode, GatewayError, invalidRequest } from "../../../base/errors.ts";
import type { Principal } from "../../../domain/principal.ts";
import { closeCodes } from "../../../websocket/frame-format.ts";
import { checkUpgradeRequest } from "../../../websocket/handshake.ts";
import { WebSocketLink } from "../../../websocket/websocket-link.ts";
import { errorTable, renderError, toGatewayError } from "../../exchange/errors.ts";
import type { Exchange, MessageRequest, UpgradeAnswer } from "../../exchange/route.ts";
import type { InferenceRouteDeps } from "../inference-answer.ts";
import { noteRefused } from "../usage/refused-inference.ts";
import { HeldResponses } from "./held-responses.ts";
import { parseMessage, readMessage, streamIdOf } from "./socket-message.ts";
import { answerMessage, mostUnsentBytes, type SocketStream } from "./socket-request.ts";

/** OpenAI closes a connection after an hour; clients open another one. */
const longestMs = 60 * 60_000;
/** Messages that wait for the response before theirs. */
const mostWaiting = 8;
/** Refusals that a client does not read, which sends on. */
const mostUnreadBytes = 1024 * 1024;

/** What a credential that has ended is answered with, as it is at the next request by HTTP. */
const endsConnection: ReadonlySet<string> = new Set<ErrorCode>(["invalid_api_key", "token_expired"]);

export interface ResponseSocketOptions {
  deps: InferenceRouteDeps;
  /** A request of its own, for each message. */
  message(): MessageRequest;
  /** The principal that the credential of the connection gives now; throws where it ended. */
  principal(): Principal | Promise<Principal>;
  holder: Holder;
  /** `x-headrace-tags` of the request that opened the connection. */
  tagHeader: string | null;
  priorityHeader: string | null;
  cacheHeader: string | null;
}

/** Throws `invalid_request` where the request is none for a WebSocket. */
export function upgradeToResponses(exchange: Exchange, options: ResponseSocketOptions): UpgradeAnswer {
  const checked = checkUpgradeRequest(exchange.req, undefined);
  if ("problem" in checked) {
    Object.assign(exchange.answerHeaders, checked.headers);
    throw invalidRequest(checked.problem);
  }
  const maxMessageBytes = options.deps.requestLimits().bodyBytes;
  return {
    status: 101,
    headers: checked.headers,
    upgrade(channel) {
      new WebSocketLink(channel, {
        role: "server",
        kind: "text",
        maxMessageBytes,
        holder: options.holder,
        listen: (link) => new ResponseSocket(link, options),
      });
    },
  };
}

/** One response after the other, in the order in which they are asked for. */
class ResponseSocket implements MessageLinkListener {
  readonly #link: WebSocketLink;
  readonly #options: ResponseSocketOptions;
  readonly #left = new Cancellation();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #held: HeldResponses;
  /** On the account of the connection, as is the one that is answered. */
  readonly #waiting: Buffer[] = [];
  #stream: SocketStream | undefined;
  #busy = false;

  constructor(link: WebSocketLink, options: ResponseSocketOptions) {
    this.#link = link;
    this.#options = options;
    this.#held = new HeldResponses(options.holder);
    this.#timer = setTimeout(() => {
      const message = "The connection is an hour old. Open another one.";
      this.#tell({ status: 400, error: { code: "websocket_connection_limit_reached", message, param: null } });
      link.close(closeCodes.normal, "an hour is over");
    }, longestMs);
  }

  message(bytes: Buffer): void {
    const refusal =
      this.#waiting.length >= mostWaiting ? tooManyWait() : this.#options.holder.take("requests", bytes.length);
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
    clearTimeout(this.#timer);
    for (const { length } of this.#waiting.splice(0)) this.#options.holder.release("requests", length);
    this.#left.cancel();
    // The relay says nothing to a client that has left.
    this.#stream?.over();
    this.#held.release();
  }

  #next(): void {
    if (this.#busy || this.#left.cancelled) return;
    // Whoever does not read what was answered is answered nothing more.
    if (this.#link.unsentBytes > mostUnsentBytes) return;
    const bytes = this.#waiting.shift();
    if (!bytes) return;
    this.#busy = true;
    void this.#answer(bytes).finally(() => {
      this.#options.holder.release("requests", bytes.length);
      this.#busy = false;
      this.#stream = undefined;
      this.#next();
    });
  }

  /** Never rejects. */
  async #answer(bytes: Buffer): Promise<void> {
    const { deps, tagHeader, priorityHeader, cacheHeader } = this.#options;
    const exchange = this.#options.message();
    let principal: Principal | undefined;
    let streamId: string | undefined;
    try {
      principal = await this.#options.principal();
      const holder = exchange.by(principal);
      const message = parseMessage(bytes);
      streamId = streamIdOf(message);
      const fault = await answerMessage(
        readMessage(message),
        {
          ...{ exchange, principal, holder, streamId, tagHeader, priorityHeader, cacheHeader },
          ...{ left: this.#left, held: this.#held, link: this.#link },
          begun: (stream) => {
            this.#stream = stream;
          },
        },
        deps,
      );
      exchange.finish(fault);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      if (principal && !exchange.isOnLedger) {
        noteRefused("response", exchange, principal, error, exchange.durationNow(), deps);
      }
      exchange.finish(error);
      this.#fail(error, streamId);
      if (endsConnection.has(error.code)) this.#link.close(closeCodes.policyViolation, "the credential has ended");
    } finally {
      // One that ended after its connection holds nothing for it.
      if (this.#left.cancelled) this.#held.release();
    }
  }

  #fail(error: GatewayError, streamId: string | undefined): void {
    const { status } = errorTable[error.code];
    const stream = streamId === undefined ? {} : { stream_id: streamId };
    this.#tell({ ...stream, status, ...(JSON.parse(renderError(error)) as object) });
  }

  #tell(members: object): void {
    if (this.#link.unsentBytes > mostUnreadBytes) {
      this.#link.terminate();
      return;
    }
    this.#link.send(Buffer.from(JSON.stringify({ type: "error", ...members })));
  }
}

function tooManyWait(): GatewayError {
  return new GatewayError(
    "rate_limit_exceeded",
    `${mostWaiting} messages wait for this connection's responses already.`,
    { shouldRetry: true },
  );
}
