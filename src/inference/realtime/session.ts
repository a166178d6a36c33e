// A realtime session, which forwards events between a client and a model server.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { MessageLinkListener, PausableLink } from "../../base/bytes/message-link.ts";
import { GatewayError } from "../../base/errors.ts";
import { noIndex } from "../../base/indexed-set.ts";
import type { UsageOutcome } from "../../domain/usage/usage.ts";
import { isHeartbeat } from "../../requests/dialects/keep-alive.ts";
import type { InferenceDeps } from "../call.ts";
import { type Stoppable, stoppingError } from "../stopping.ts";
import type { BookedResponse } from "./booked-response.ts";
import {
  closing,
  eventIdOf,
  newEventId,
  readClientEvent,
  readServerEvent,
  responseIdOf,
  serverFault,
  tokenLimitIn,
} from "./events.ts";
import { maxBufferedBytes, OneWay } from "./one-way.ts";
import { forClient, forServer, namesModel } from "./realtime-models.ts";
import { type Json, memberOf } from "./reported-usage.ts";
import { type SessionEnd, SessionResponses, type SessionResponsesOptions } from "./session-responses.ts";
import { type RealtimeTimes, realtimeTimes, SessionWatch } from "./session-watch.ts";

export interface RealtimeOptions extends SessionResponsesOptions {
  deps: SessionResponsesOptions["deps"] & Pick<InferenceDeps, "stopping">;
  /** The memory account for messages of the client. */
  memoryAccount: MemoryAccount;
  /** Called once, when the connection to the model server has ended. */
  over(): void;
  /** Returns the `error` member of an error event for the client. */
  errorOf(error: GatewayError): Json;
  times?: Partial<RealtimeTimes>;
}

/** Maximum requested and running responses of a session, without those that the server has probably failed. */
const maxResponses = 8;
/** Maximum requested and running responses of a session, including those that the server has probably failed. */
const maxOpenResponses = 64;
/** Prefix of the event ids that the gateway adds to client events without an id. */
const ownIds = "event_headrace_";
const maxBeatLength = 256;

export class RealtimeSession implements Stoppable {
  setIndex = noIndex;
  readonly #options: RealtimeOptions;
  readonly #times: RealtimeTimes;
  readonly #responses: SessionResponses;
  readonly #fromClient: OneWay;
  readonly #fromServer: OneWay;
  #client: PausableLink | undefined;
  #server: PausableLink | undefined;
  #watch: SessionWatch | undefined;
  /** The outcome and error with which the session ended. Undefined while it runs. */
  #over: SessionEnd | undefined;
  #isServerGone = false;
  #linger: ReturnType<typeof setTimeout> | undefined;
  #ids = 0;

  constructor(options: RealtimeOptions) {
    this.#options = options;
    this.#times = { ...realtimeTimes, ...options.times };
    this.#responses = new SessionResponses(options);
    this.#fromClient = new OneWay({
      from: () => this.#client,
      hasRoom: () => (this.#server?.unsentBytes ?? 0) <= maxBufferedBytes,
      take: (bytes) => this.#ofClient(bytes),
      release: (bytes) => options.memoryAccount.release("requests", bytes),
    });
    this.#fromServer = new OneWay({
      from: () => this.#server,
      // Until the client has connected, the server's first events are buffered. After the client has left, events are
      // still read.
      hasRoom: () => (this.#client ? this.#client.unsentBytes <= maxBufferedBytes : this.#over !== undefined),
      take: (bytes) => this.#ofServer(bytes),
    });
  }

  /** Returns the listener for the connection to the model server. */
  listenToServer(link: PausableLink): MessageLinkListener {
    this.#server = link;
    return {
      message: (bytes) => {
        this.#watch?.spoken();
        this.#fromServer.add(bytes);
      },
      drained: () => this.#fromClient.goOn(),
      closed: (code) => {
        this.#isServerGone = true;
        // The session ends after all buffered events were handled, because the last one may contain a response's usage.
        this.#fromServer.end(() => this.#serverClosed(code));
      },
    };
  }

  /** Returns the listener for the client's connection, and begins the session. */
  listenToClient(link: PausableLink): MessageLinkListener {
    const { deps, toGatewayError, memoryAccount } = this.#options;
    this.#client = link;
    this.#watch = new SessionWatch({
      ...{ clock: deps.clock, times: this.#times, toGatewayError },
      holds: () => this.#responses.holds(),
      expired: (message) => this.#expire(message),
      credentialEnded: (error) => this.#fail(error, closing.refused),
    });
    deps.stopping.add(this);
    // The connection can send only after this call has returned, so buffered events are handled in a microtask.
    queueMicrotask(() => this.#fromServer.goOn());
    return {
      message: (bytes) => {
        if (this.#over) return;
        this.#watch?.spoken();
        const refusal = memoryAccount.take("requests", bytes.byteLength);
        if (refusal) this.#fail(refusal, closing.refused);
        else this.#fromClient.add(bytes);
      },
      drained: () => this.#fromServer.goOn(),
      closed: () => this.#leave("cancelled", undefined),
    };
  }

  /** Called if the client's connection was never established. */
  abandon(): void {
    this.#over = { outcome: "cancelled", error: undefined };
    this.#server?.terminate();
  }

  /**
   * Ends the session immediately, because the process stops. Does not wait for usage that the server has not reported
   * yet.
   */
  stop(): void {
    this.#fail(stoppingError(), closing.goingAway);
    if (this.#over) this.#responses.settleAll(this.#over);
    this.#endIfAlone();
  }

  // Events from the client to the server.

  #ofClient(bytes: Uint8Array): void | Promise<void> {
    if (this.#over || this.#isServerGone) return;
    let event: Json;
    try {
      event = readClientEvent(bytes);
    } catch (error) {
      this.#sendError(this.#options.toGatewayError(error), null);
      return;
    }
    if (namesModel(event)) return this.#named(event);
    this.#pass(event);
  }

  #pass(event: Json): void {
    this.#responses.said.heard(event);
    // The parsed event is serialised again, so that the server cannot read it differently than the gateway did.
    this.#server?.send(Buffer.from(JSON.stringify(event)));
  }

  /** Handles a client event that may name models or set token limits. */
  async #named(event: Json): Promise<void> {
    const { models, deps } = this.#options;
    const own = eventIdOf(event);
    try {
      const principal = "session" in event ? await this.#options.principal() : undefined;
      const sent = forServer(event, models, principal, deps);
      this.#responses.transcriber = sent.transcriber ?? this.#responses.transcriber;
      this.#responses.maxTokens = tokenLimitIn(memberOf(event, "session"), this.#responses.maxTokens);
      if (event["type"] === "response.create") await this.#create(sent.event, own);
      else this.#pass(sent.event);
      if (sent.leftOut) this.#sendError(sent.leftOut, own);
    } catch (error) {
      this.#sendError(this.#options.toGatewayError(error), own);
    }
  }

  async #create(event: Json, own: string | null): Promise<void> {
    const hasTooManyOpen = this.#responses.count >= maxOpenResponses;
    if (hasTooManyOpen || this.#responses.likelyCount >= maxResponses) {
      const message = hasTooManyOpen
        ? `${maxOpenResponses} responses of this session have no end yet, some of which may have failed. Open another session.`
        : `${maxResponses} responses of this session are under way. Wait for one to end.`;
      this.#sendError(new GatewayError("rate_limit_exceeded", message, { shouldRetry: true }), own);
      return;
    }
    const eventId = own ?? `${ownIds}${++this.#ids}`;
    try {
      const limit = tokenLimitIn(memberOf(event, "response"), this.#responses.maxTokens);
      const isAsked = await this.#responses.ask(eventId, limit, () => this.#over !== undefined);
      if (isAsked) this.#pass({ ...event, event_id: eventId });
    } catch (error) {
      this.#fail(this.#options.toGatewayError(error), closing.refused, own);
    }
  }

  #cancelAtServer(id?: string): void {
    this.#server?.send(Buffer.from(JSON.stringify({ type: "response.cancel", response_id: id })));
  }

  // Events from the server to the client.

  #ofServer(bytes: Uint8Array): void | Promise<void> {
    if (isBeat(bytes)) return;
    let event: Json;
    try {
      event = readServerEvent(bytes);
    } catch {
      this.#fail(serverFault("The model server sent what is no event."), closing.serverFault);
      return;
    }
    switch (event["type"]) {
      case "session.created":
      case "session.updated":
      case "transcription_session.created":
      case "transcription_session.updated": {
        const session = memberOf(event, "session");
        this.#give({ ...event, session: forClient(session, this.#options.models, this.#responses.transcriber) });
        return;
      }
      // These events report the operator's rate limits at the model server, which the client must not see.
      case "rate_limits.updated":
        return;
      case "response.created":
        return this.#created(event);
      case "response.done":
        return this.#done(event);
      case "conversation.item.input_audio_transcription.delta":
      case "transcription.delta":
        this.#responses.said.wrote(event["delta"]);
        this.#client?.send(bytes);
        return;
      case "conversation.item.input_audio_transcription.completed":
        return this.#transcribed(event, event["transcript"]);
      case "transcription.done":
        return this.#transcribed(event, event["text"]);
      case "error":
        this.#failedAtServer(event);
        return;
      default:
        return this.#goesOn(event, bytes);
    }
  }

  #give(event: Json): void {
    this.#client?.send(Buffer.from(JSON.stringify(event)));
  }

  async #created(event: Json): Promise<void> {
    const id = responseIdOf(event);
    try {
      await this.#responses.begin(id);
      if (this.#over) this.#cancelAtServer(id);
      this.#give(this.#withName(event));
    } catch (error) {
      this.#cancelAtServer(id);
      this.#fail(this.#options.toGatewayError(error), closing.refused);
    }
  }

  async #done(event: Json): Promise<void> {
    await this.#responses.done(event, this.#over);
    this.#give(this.#withName(event));
    this.#endIfAlone();
  }

  /** Replaces the server's model id in a response with the name that the client used. */
  #withName(event: Json): Json {
    const response = memberOf(event, "response");
    if (typeof response["model"] !== "string") return event;
    return { ...event, response: { ...response, model: this.#options.models.name } };
  }

  async #transcribed(event: Json, text: unknown): Promise<void> {
    const refusal = await this.#responses.transcribed(event["usage"], text);
    this.#give(event);
    if (refusal !== undefined) this.#fail(this.#options.toGatewayError(refusal), closing.refused);
  }

  #goesOn(event: Json, bytes: Uint8Array): void | Promise<void> {
    const booked = this.#responses.of(event);
    this.#client?.send(bytes);
    const goesOn = booked?.heard(event) ?? "goes_on";
    if (goesOn === "goes_on" || !booked) return;
    if (goesOn === "spent") this.#spent(event);
    else return this.#whenKnown(booked, goesOn, event);
  }

  async #whenKnown(booked: BookedResponse, known: Promise<void>, event: Json): Promise<void> {
    let answer: "goes_on" | "spent" | Promise<void> = known;
    while (answer instanceof Promise) {
      await answer;
      answer = booked.recheck();
    }
    if (answer === "spent") this.#spent(event);
  }

  #spent(event: Json): void {
    this.#cancelAtServer(responseIdOf(event));
    const message = "A quota of this key or its account is spent: the response ends here. GET /v1/limits shows quotas.";
    this.#fail(new GatewayError("insufficient_quota", message), closing.refused);
  }

  #failedAtServer(event: Json): void {
    const error = memberOf(event, "error");
    const id = error["event_id"];
    if (!this.#responses.refusedAtServer(id)) this.#responses.doubt();
    const isOurs = typeof id === "string" && id.startsWith(ownIds);
    const clientEvent = isOurs ? { ...event, error: { ...error, event_id: null } } : event;
    const { engine } = this.#options.models.deployment;
    this.#client?.send(Buffer.from(engine.redact(JSON.stringify(clientEvent))));
    this.#endIfAlone();
  }

  #sendError(error: GatewayError, eventId: string | null): void {
    this.#giveError({ ...this.#options.errorOf(error), event_id: eventId });
  }

  #giveError(error: Json): void {
    this.#give({ type: "error", event_id: newEventId(), error });
  }

  // The end of the session.

  #expire(message: string): void {
    this.#giveError({ type: "invalid_request_error", code: "session_expired", message, event_id: null });
    this.#client?.close(closing.normal, "the session has expired");
    this.#leave("cancelled", undefined);
  }

  #fail(error: GatewayError, code: number, eventId: string | null = null): void {
    if (this.#over) return;
    this.#sendError(error, eventId);
    this.#client?.close(code, error.code);
    this.#leave("failed", error);
  }

  /** Ends the session when the client has left or must leave. Cancels running responses, and waits for their usage. */
  #leave(outcome: UsageOutcome, error: GatewayError | undefined): void {
    if (this.#over) return;
    const over = { outcome, error };
    this.#over = over;
    this.#watch?.stop();
    this.#fromClient.stop();
    this.#client = undefined;
    this.#fromServer.goOn();
    for (const id of this.#responses.idsUnderWay) this.#cancelAtServer(id);
    if (this.#responses.areAsked) this.#cancelAtServer();
    this.#linger = setTimeout(() => {
      this.#responses.settleAll(over);
      this.#endIfAlone();
    }, this.#times.lingerMs);
    this.#endIfAlone();
  }

  /** Closes the connection to the model server if the session has ended and no response is running. */
  #endIfAlone(): void {
    if (!this.#over || this.#responses.count > 0) return;
    clearTimeout(this.#linger);
    this.#options.deps.stopping.remove(this);
    this.#fromServer.stop();
    this.#server?.close(closing.normal, "");
  }

  #serverClosed(code: number): void {
    // A server that transcribes continuously reports the usage only at the end. So an unfinished transcript is charged
    // now.
    if (this.#responses.said.isWriting) void this.#responses.transcribed(undefined, undefined);
    const error = serverFault("The connection to the model server ended.");
    const isPlain = code === closing.normal || code === closing.goingAway;
    const isFault = this.#responses.count > 0 || !isPlain;
    this.#responses.settleAll(this.#over ?? { outcome: "failed", error });
    if (isFault) this.#fail(error, closing.serverFault);
    this.#client?.close(code, "the model server ended the session");
    this.#leave("cancelled", undefined);
    this.#endIfAlone();
    this.#options.over();
  }
}

/** Reports whether a message of the model server is a heartbeat. */
function isBeat(bytes: Uint8Array): boolean {
  return bytes.byteLength <= maxBeatLength && isHeartbeat("", Buffer.from(bytes).toString());
}
