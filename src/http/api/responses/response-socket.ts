// The WebSocket of Responses: each message asks for a response, whose events come back as messages.
import { isUtf8 } from "node:buffer";
import { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { decodeByteText } from "../../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import type { Holder } from "../../../base/bytes/held-bytes.ts";
import type { MessageLinkListener } from "../../../base/bytes/message-link.ts";
import { Cancellation } from "../../../base/cancellation.ts";
import { GatewayError, invalidRequest } from "../../../base/errors.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { InferenceAnswer, InferenceCall } from "../../../inference/call.ts";
import type { DecodedRequest } from "../../../inference/decoded-request.ts";
import { run } from "../../../inference/run.ts";
import { closeCodes } from "../../../websocket/frame-format.ts";
import { checkUpgradeRequest } from "../../../websocket/handshake.ts";
import { WebSocketLink } from "../../../websocket/websocket-link.ts";
import { decodeRequest } from "../../decode/decode-request.ts";
import { errorTable, renderError, toGatewayError } from "../../exchange/errors.ts";
import { newRequestId } from "../../exchange/request-id.ts";
import type { Exchange, UpgradeAnswer } from "../../exchange/route.ts";
import type { InferenceRouteDeps } from "../inference-answer.ts";
import { noteRefused } from "../usage/refused-inference.ts";

/** OpenAI closes a connection after an hour; clients open another one. */
const longestMs = 60 * 60_000;
/** Messages that wait for the response before theirs. */
const mostWaiting = 8;
/** With more unsent than this the client is behind, and its engine is not read. */
const mostUnsentBytes = 256 * 1024;

export interface ResponseSocketOptions {
  deps: InferenceRouteDeps;
  /** The principal that the credential of the connection gives now; throws where it ended. */
  principal(): Principal | Promise<Principal>;
  holder: Holder;
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
  readonly #waiting: Buffer[] = [];
  #stream: SocketStream | undefined;
  #busy = false;

  constructor(link: WebSocketLink, options: ResponseSocketOptions) {
    this.#link = link;
    this.#options = options;
    this.#timer = setTimeout(() => {
      const message = "The connection is an hour old. Open another one.";
      this.#tell({ status: 400, error: { code: "websocket_connection_limit_reached", message, param: null } });
      link.close(closeCodes.normal, "an hour is over");
    }, longestMs);
  }

  message(bytes: Buffer): void {
    if (this.#waiting.length >= mostWaiting) {
      this.#fail(
        new GatewayError(
          "rate_limit_exceeded",
          `${mostWaiting} messages wait for this connection's responses already.`,
          {
            shouldRetry: true,
          },
        ),
      );
      return;
    }
    this.#waiting.push(bytes);
    this.#next();
  }

  drained(): void {
    this.#stream?.onDrain?.();
  }

  closed(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
    this.#left.cancel();
    // The relay says nothing to a client that has left.
    this.#stream?.over();
  }

  #next(): void {
    if (this.#busy || this.#left.cancelled) return;
    const bytes = this.#waiting.shift();
    if (!bytes) return;
    this.#busy = true;
    this.#answer(bytes)
      .catch((error: unknown) => this.#fail(toGatewayError(error)))
      .finally(() => {
        this.#busy = false;
        this.#stream = undefined;
        this.#next();
      });
  }

  async #answer(bytes: Buffer): Promise<void> {
    const { deps, holder } = this.#options;
    const refusal = holder.take("requests", bytes.length);
    if (refusal) throw refusal;
    try {
      const requestId = newRequestId();
      const principal = await this.#options.principal();
      const line: Record<string, string | boolean> = {};
      const startedMs = deps.clock.monotonicMs();
      const call = new Promise<void>((resolve, reject) => {
        const request = decodeRequest("response", createdBody(bytes), deps.requestLimits());
        line["model"] = request.model;
        line["stream"] = true;
        const begin = (answer: InferenceAnswer) => {
          if (typeof answer !== "function") throw new Error("A response that was to be streamed came whole.");
          this.#stream = new SocketStream(this.#link, resolve);
          answer(this.#stream);
        };
        const socketCall = new SocketCall({ request, principal, requestId, left: this.#left, holder, begin });
        Promise.resolve(run(socketCall, deps)).catch(reject);
      });
      await call.catch((error: unknown) => {
        const durationMs = deps.clock.monotonicMs() - startedMs;
        noteRefused("response", { requestId, line }, principal, toGatewayError(error), durationMs, deps);
        throw error;
      });
    } finally {
      holder.release("requests", bytes.length);
    }
  }

  #fail(error: GatewayError): void {
    const { status } = errorTable[error.code];
    this.#tell({ status, ...(JSON.parse(renderError(error)) as object) });
  }

  #tell(members: object): void {
    this.#link.send(Buffer.from(JSON.stringify({ type: "error", ...members })));
  }
}

/** The body of the response that a message asks for: what of it belongs to the connection is no part of it. */
function createdBody(bytes: Buffer): ByteSpan {
  if (!isUtf8(bytes)) throw invalidRequest("A message must be JSON in UTF-8.");
  let message: unknown;
  try {
    message = JSON.parse(bytes.toString());
  } catch {
    throw invalidRequest("A message must be JSON.");
  }
  const { type, stream_id: _id, generate: _generate, ...body } = (message ?? {}) as Record<string, unknown>;
  if (type !== "response.create") {
    throw invalidRequest("type: must be response.create, the one message that is understood here.");
  }
  return ByteSpan.of(Buffer.from(JSON.stringify({ ...body, stream: true, background: undefined })));
}

interface SocketCallOptions
  extends Pick<InferenceCall<void>, "request" | "principal" | "requestId" | "left" | "holder"> {
  begin(answer: InferenceAnswer): void;
}

/** A request for a response as it came by a message. */
class SocketCall implements InferenceCall<void> {
  readonly request: DecodedRequest;
  readonly principal: Principal;
  readonly requestId: string;
  readonly left: Cancellation;
  readonly holder: Holder;
  readonly #begin: SocketCallOptions["begin"];

  constructor({ request, principal, requestId, left, holder, begin }: SocketCallOptions) {
    this.request = request;
    this.principal = principal;
    this.requestId = requestId;
    this.left = left;
    this.holder = holder;
    this.#begin = begin;
  }

  renderError(error: GatewayError): string {
    return renderError(error);
  }

  onLimits(): void {}
  onServedBy(): void {}
  onIgnored(): void {}
  onLedger(): void {}
  onEnd(): void {}

  answer(answer: InferenceAnswer): void {
    this.#begin(answer);
  }
}

/** Sends each event of a stream as a message. */
class SocketStream implements ClientStream {
  onDrain: (() => void) | undefined;
  readonly #link: WebSocketLink;
  readonly #ended: () => void;

  constructor(link: WebSocketLink, ended: () => void) {
    this.#link = link;
    this.#ended = ended;
  }

  /** Events come whole. */
  write(bytes: string): boolean {
    for (const event of bytes.split("\n\n")) {
      const start = event.indexOf("data: ");
      if (start >= 0) this.#link.send(Buffer.from(decodeByteText(event.slice(start + "data: ".length))));
    }
    return this.#link.unsentBytes <= mostUnsentBytes;
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  end(last = ""): void {
    this.write(last);
    this.#ended();
  }

  abort(): void {
    this.#link.terminate();
    this.#ended();
  }

  over(): void {
    this.#ended();
  }
}
