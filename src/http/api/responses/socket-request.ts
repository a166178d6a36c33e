// Runs one response that was requested over a WebSocket, and sends its events as messages.

import type { MemoryAccount } from "../../../base/bytes/buffered-bytes.ts";
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import type { Cancellation } from "../../../base/cancellation.ts";
import type { ErrorCode, GatewayError } from "../../../base/errors.ts";
import type { Deployment } from "../../../domain/models/model.ts";
import { loggedModel } from "../../../domain/models/model-patterns.ts";
import type { Priority } from "../../../domain/models/policies/priority.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { CacheResult } from "../../../domain/usage/cache-result.ts";
import type { RequestTrace } from "../../../domain/usage/trace.ts";
import type { UsageEnd, UsageOutcome } from "../../../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall } from "../../../inference/call.ts";
import { runResponse } from "../../../inference/hosted/run-response.ts";
import { logEnd } from "../../../inference/log-usage.ts";
import type { MessageRequest } from "../../../inference/message-request.ts";
import { requireServable } from "../../../inference/routing/servable.ts";
import { requireModel } from "../../../policy/authorize.ts";
import { priorityAsked } from "../../../policy/request-priority.ts";
import { decodeRequest } from "../../../requests/decode/decode-request.ts";
import type { DecodedRequest } from "../../../requests/decoded-request.ts";
import { dialects } from "../../../requests/dialects/dialects.ts";
import { responseFormat } from "../../../requests/dialects/response/format.ts";
import { isObject, type Json, objectsOf } from "../../../requests/dialects/response/json.ts";
import { ownItems } from "../../../requests/dialects/response/kept-items.ts";
import { ResponseCollector } from "../../../requests/dialects/response/response-collector.ts";
import { withKeptInput } from "../../../responses/kept-input.ts";
import type { RecentResponses } from "../../../responses/recent-responses.ts";
import type { WebSocketLink } from "../../../websocket/websocket-link.ts";
import { renderError, toGatewayError } from "../../../wire/errors.ts";
import type { InferenceRouteDeps } from "../inference-answer.ts";
import { responseOwnerOf } from "../response-owner.ts";
import type { SocketMessage } from "./socket-message.ts";

/** If more bytes than this are unsent, reading from the model server pauses. */
export const maxUnsentBytes = 256 * 1024;

export interface SocketRequestOptions {
  exchange: MessageRequest;
  principal: Principal;
  memoryAccount: MemoryAccount;
  clientGone: Cancellation;
  recent: RecentResponses;
  link: WebSocketLink;
  streamId: string | undefined;
  /** The header `x-headrace-tags` of the request that opened the connection. */
  tagHeader: string | null;
  /** The header `x-headrace-priority` of the request that opened the connection. */
  priorityHeader: string | null;
  /** The header `x-headrace-cache` of the request that opened the connection. */
  cacheHeader: string | null;
  /** Called with the event stream when the answer begins. */
  begun(stream: SocketStream): void;
}

/**
 * After these errors, clients send the same message again. So the response that the message continues stays available.
 */
const sentAgain = new Set<ErrorCode>(["rate_limit_exceeded", "service_unavailable"]);

/**
 * Answers a message. Resolves after the answer was sent, with the error if it broke off. Rejects if there was no
 * answer. After most errors, the response that the message continues is dropped (OpenAI, "WebSocket mode"), and the
 * client must send its whole input again.
 */
export async function answerMessage(
  { body, generates }: SocketMessage,
  options: SocketRequestOptions,
  deps: InferenceRouteDeps,
): Promise<GatewayError | undefined> {
  const sent = decodeRequest("response", body, deps.requestLimits());
  const previousId = sent.body["previous_response_id"];
  const evict = ({ code }: GatewayError) => {
    if (typeof previousId === "string" && !sentAgain.has(code)) options.recent.drop(previousId);
  };
  try {
    const fault = await answerTurn(sent, generates, options, deps);
    if (fault) evict(fault);
    return fault;
  } catch (error) {
    evict(toGatewayError(error));
    throw error;
  }
}

async function answerTurn(
  sent: DecodedRequest,
  generates: boolean,
  options: SocketRequestOptions,
  deps: InferenceRouteDeps,
): Promise<GatewayError | undefined> {
  const { exchange, principal, recent } = options;
  const limits = deps.requestLimits();
  exchange.line["model"] = loggedModel(sent.model);
  exchange.line["stream"] = true;
  const kept = {
    ...{ owner: responseOwnerOf(principal), limits },
    hold: (bytes: number) => exchange.hold(bytes),
    recentItems: (id: string) => recent.find(id),
  };
  // Rejects if the caller's request limit is reached, before stored items are read.
  if (sent.namesKept) await deps.admitter.refuseSpent(principal, { onLimits: () => {} });
  const request = sent.namesKept ? await withKeptInput(sent, deps, kept) : sent;
  exchange.trace?.asked(request);
  if (!generates) {
    await makeReady(request, options, deps);
    return undefined;
  }
  const call = new SocketCall(request, options);
  await new Promise<void>((resolve, reject) => {
    call.ended = resolve;
    Promise.resolve(runResponse(call, deps)).catch(reject);
  });
  return call.fault;
}

/**
 * Answers with an empty response that later responses can continue, without running a model and without charge. The
 * response exists only on this connection.
 */
async function makeReady(
  request: DecodedRequest,
  { exchange, principal, recent, link, streamId }: SocketRequestOptions,
  deps: InferenceRouteDeps,
): Promise<void> {
  if (!deps.catalog.find(request.model)) await deps.catalog.whenComplete();
  const model = requireModel(principal, deps.catalog.find(request.model), request.model);
  requireServable(model, request);
  const id = dialects.response.idOf(exchange.requestId);
  const writer = responseFormat.writer({
    ...{ id, model: model.id, created: deps.clock.nowSeconds(), promptTokens: 0, request: request.body },
    members: dialects.response.kept?.members(false, request.goesOn),
    seal: deps.sealFor(principal.account.id),
  });
  writer.end({ reason: "stop" });
  new SocketStream(link, streamId, () => {}).end(
    encodeByteText(writer.ending({ promptTokens: 0, completionTokens: 0 })),
  );
  recent.add(id, ownItems(request.body["input"]));
}

/** A model request that arrived as a WebSocket message. */
class SocketCall implements InferenceCall<void> {
  ended: () => void = () => {};
  /** The error of an answer that broke off after it had begun. */
  fault: GatewayError | undefined;
  readonly request: DecodedRequest;
  readonly priority: Priority | undefined;
  readonly #options: SocketRequestOptions;

  constructor(request: DecodedRequest, options: SocketRequestOptions) {
    this.priority = priorityAsked(options.priorityHeader, options.principal);
    this.request = request;
    this.#options = options;
  }

  get principal(): Principal {
    return this.#options.principal;
  }

  get requestId(): string {
    return this.#options.exchange.requestId;
  }

  get tagHeader(): string | null {
    return this.#options.tagHeader;
  }

  get cacheHeader(): string | null {
    return this.#options.cacheHeader;
  }

  get clientGone(): Cancellation {
    return this.#options.clientGone;
  }

  get memoryAccount(): MemoryAccount {
    return this.#options.memoryAccount;
  }

  get trace(): RequestTrace | undefined {
    return this.#options.exchange.trace;
  }

  renderError(error: GatewayError): string {
    return renderError(error);
  }

  onLimits(): void {}

  onServedBy(model: string): void {
    this.#options.exchange.line["served_by"] = model;
  }

  onIgnored(): void {}

  onCapped(): void {}

  onCache(result: CacheResult): void {
    this.#options.exchange.line["cache"] = result;
  }

  onLedger(): void {
    this.#options.exchange.isOnLedger = true;
  }

  onEnd(outcome: UsageOutcome, usage: UsageEnd, error: unknown, served?: Deployment): void {
    logEnd(this.#options.exchange.line, outcome, usage, served);
    if (outcome === "failed") this.fault = toGatewayError(error);
  }

  answer(answer: InferenceAnswer): void {
    if (typeof answer !== "function") throw new Error("A response that was to be streamed came whole.");
    const { link, streamId, begun } = this.#options;
    const stream = new SocketStream(link, streamId, (last) => {
      if (last) this.#hold(last);
      this.ended();
    });
    begun(stream);
    answer(stream);
  }

  /**
   * Stores a response on this connection, so that later messages can continue it. Used for responses that are not
   * stored otherwise.
   */
  #hold(response: Json): void {
    const { id, store, status, output } = response;
    const isWhole = status === "completed" || status === "incomplete";
    if (store === true || !isWhole || typeof id !== "string") return;
    const input = ownItems(this.request.body["input"]);
    this.#options.recent.add(id, [...input, ...objectsOf(output)]);
  }
}

/** Sends each event of a response as a WebSocket message. */
export class SocketStream implements ClientStream {
  onDrain: (() => void) | undefined;
  readonly #link: WebSocketLink;
  /** Beginning of each event's JSON, with the client's id of the conversation thread. Empty if there is no id. */
  readonly #begin: string;
  readonly #ended: (response: Json | undefined) => void;

  /** `ended` is called at the end of the stream, with the response that the last event contains, if any. */
  constructor(link: WebSocketLink, streamId: string | undefined, ended: (response: Json | undefined) => void) {
    this.#link = link;
    this.#begin = streamId === undefined ? "" : `{"stream_id":${JSON.stringify(streamId)},`;
    this.#ended = ended;
  }

  /** Sends the events. Each call must contain complete events. */
  write(bytes: string): boolean {
    for (const event of bytes.split("\n\n")) {
      const start = event.indexOf("data: ");
      if (start < 0) continue;
      const data = decodeByteText(event.slice(start + "data: ".length));
      this.#link.send(Buffer.from(this.#begin === "" ? data : this.#begin + data.slice(data.indexOf("{") + 1)));
    }
    return this.#link.unsentBytes <= maxUnsentBytes;
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  end(last = ""): void {
    const collector = new ResponseCollector();
    collector.add(decodeByteText(last));
    const response = collector.answer();
    this.write(last);
    this.#ended(isObject(response) ? response : undefined);
  }

  abort(): void {
    this.#link.terminate();
    this.#ended(undefined);
  }

  over(): void {
    this.#ended(undefined);
  }
}
