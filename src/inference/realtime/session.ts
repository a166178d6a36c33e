// A realtime session: events both ways between a client and the server of a model, and each response on the ledger.
import { nowhere } from "../../base/bag.ts";
import type { Holder } from "../../base/bytes/held-bytes.ts";
import type { MessageLinkListener, PausableLink } from "../../base/bytes/message-link.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { bodyMass, JsonTextError, scanObject } from "../../base/text/json-text.ts";
import { shown } from "../../base/text/shown.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { Principal } from "../../domain/principal.ts";
import type { TokenUsage, UsageOutcome } from "../../domain/usage/usage.ts";
import { requireModel } from "../../policy/authorize.ts";
import type { InferenceDeps } from "../call.ts";
import { type Stoppable, stoppingError } from "../stopping.ts";
import { type BookedResponse, type BookingDeps, bookResponse, bookTold, type RequestLine } from "./booked-response.ts";
import { mostHeldBytes, OneWay } from "./one-way.ts";
import { forClient, forServer, type SessionModels, withOwnModel } from "./realtime-models.ts";
import { SaidSoFar } from "./said-so-far.ts";
import { isJson, type Json, memberOf, toldUsage } from "./told-usage.ts";

export interface RealtimeOptions {
  deps: BookingDeps & Pick<InferenceDeps, "catalog" | "stopping">;
  /** The name by which the client asked, the model, and the deployment that it is connected to. */
  models: SessionModels;
  /** The principal that the credential of the connection gives now; throws where it ended. */
  principal(): Principal | Promise<Principal>;
  /** A request of its own, for each response. */
  line(): RequestLine;
  /** Told of a response that was refused before it was on the ledger. */
  refused(line: RequestLine, principal: Principal, error: GatewayError): void;
  /** Called once the server's end is gone. */
  over(): void;
  tagHeader: string | null;
  /** On whose account the messages of the client are held. */
  holder: Holder;
  /** The member `error` of an answer that tells it. */
  errorOf(error: GatewayError): Json;
  toGatewayError(thrown: unknown): GatewayError;
  times?: Partial<typeof realtimeTimes>;
}

/** `longest`: OpenAI ends a session after an hour as well. `linger`: for what a response that is broken off has used. */
export const realtimeTimes = {
  longestMs: 60 * 60_000,
  idleMs: 10 * 60_000,
  credentialMs: 400,
  lingerMs: 3_000,
};

/** Responses at once that are asked for or under way. */
const mostResponses = 8;
/** Levels of an event: the schemas of tools have a dozen. */
const mostDepth = 100;
/** RFC 6455, 7.4.1, and 1011 of the IANA registry. */
const closing = { normal: 1000, goingAway: 1001, refused: 1008, serverFault: 1011 } as const;

/** A response that the client asked for, until the server says that it begins. */
interface Asked {
  readonly eventId: string;
  readonly isOurId: boolean;
  readonly booked: BookedResponse;
}

export class RealtimeSession implements Stoppable {
  inBag = nowhere;
  readonly #options: RealtimeOptions;
  readonly #times: typeof realtimeTimes;
  readonly #said = new SaidSoFar();
  readonly #asked: Asked[] = [];
  readonly #responses = new Map<string, BookedResponse>();
  readonly #fromClient: OneWay;
  readonly #fromServer: OneWay;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  #client: PausableLink | undefined;
  #server: PausableLink | undefined;
  #transcriber: Model | undefined;
  /** The most tokens of a response that does not say so itself, as the client last asked for it. */
  #maxTokens: number | undefined;
  #lastMs = 0;
  #checking = false;
  #isOver = false;
  /** How what is under way ends, once it is over. */
  #ending: { outcome: UsageOutcome; error: GatewayError | undefined } = { outcome: "cancelled", error: undefined };
  #isServerGone = false;
  #lastPrincipal: Principal | undefined;
  #linger: ReturnType<typeof setTimeout> | undefined;
  #ids = 0;

  constructor(options: RealtimeOptions) {
    this.#options = options;
    this.#times = { ...realtimeTimes, ...options.times };
    this.#fromClient = new OneWay({
      from: () => this.#client,
      hasRoom: () => (this.#server?.unsentBytes ?? 0) <= mostHeldBytes,
      take: (bytes) => this.#ofClient(bytes),
      release: (bytes) => this.#options.holder.release("requests", bytes),
    });
    this.#fromServer = new OneWay({
      from: () => this.#server,
      // What the server says first waits for the client; and what it says last is read without one.
      hasRoom: () => (this.#client ? this.#client.unsentBytes <= mostHeldBytes : this.#isOver),
      take: (bytes) => this.#ofServer(bytes),
    });
  }

  /** The listener of the server's end. */
  listenToServer(link: PausableLink): MessageLinkListener {
    this.#server = link;
    return {
      message: (bytes) => {
        this.#lastMs = this.#nowMs();
        this.#fromServer.add(bytes);
      },
      drained: () => this.#fromClient.goOn(),
      closed: (code) => {
        this.#isServerGone = true;
        // What it said last may be what a response has used.
        this.#fromServer.end(() => this.#serverClosed(code));
      },
    };
  }

  /** The listener of the client's end; the session begins. */
  listenToClient(link: PausableLink): MessageLinkListener {
    this.#client = link;
    this.#lastMs = this.#nowMs();
    const { longestMs, idleMs, credentialMs } = this.#times;
    const minutes = Math.round(longestMs / 60_000);
    this.#timers.push(
      setTimeout(
        () => this.#expire(`The session is ${minutes} minutes old, the most that it may be. Open another.`),
        longestMs,
      ),
      setInterval(
        () => {
          if (this.#nowMs() - this.#lastMs < idleMs) return;
          this.#expire(`Nobody has said anything for ${Math.round(idleMs / 60_000)} minutes. Open another session.`);
        },
        Math.min(idleMs, 15_000),
      ),
      setInterval(() => void this.#check(), credentialMs),
    );
    this.#options.deps.stopping.add(this);
    queueMicrotask(() => this.#fromServer.goOn());
    return {
      message: (bytes) => {
        this.#lastMs = this.#nowMs();
        if (this.#isOver) return;
        const refusal = this.#options.holder.take("requests", bytes.byteLength);
        if (refusal) this.#fail(refusal, closing.refused);
        else this.#fromClient.add(bytes);
      },
      drained: () => this.#fromServer.goOn(),
      closed: () => this.#leave("cancelled", undefined),
    };
  }

  /** The client never came. */
  abandon(): void {
    this.#isOver = true;
    this.#server?.terminate();
  }

  /** The process ends: nothing is waited for. */
  stop(): void {
    this.#fail(stoppingError(), closing.goingAway);
    this.#settleAll("failed", stoppingError());
    this.#server?.close(closing.goingAway, "the gateway is being stopped");
  }

  // Towards the server.

  #ofClient(bytes: Uint8Array): void | Promise<void> {
    if (this.#isOver || this.#isServerGone) return;
    let event: Json;
    try {
      event = readEvent(bytes);
    } catch (error) {
      this.#tell(this.#options.toGatewayError(error), null);
      return;
    }
    const { type } = event;
    if (type === "response.create") return this.#create(event);
    if (type === "session.update" || type === "transcription_session.update") return this.#update(event);
    this.#pass(event);
  }

  #pass(event: Json): void {
    this.#said.heard(event);
    // Written anew: what one reader takes for another event than a second does is nobody's event.
    this.#server?.send(Buffer.from(JSON.stringify(event)));
  }

  async #update(event: Json): Promise<void> {
    try {
      const { models, deps } = this.#options;
      const principal = await this.#options.principal();
      const told = memberOf(event, "session");
      const { session, transcriber } = forServer(told, models, principal, deps);
      // vLLM has it here.
      const named = withOwnModel(event, "model", models);
      this.#transcriber = transcriber ?? this.#transcriber;
      this.#maxTokens = limitIn(told, this.#maxTokens);
      this.#pass("session" in event ? { ...named, session } : named);
    } catch (error) {
      this.#tell(this.#options.toGatewayError(error), idOf(event));
    }
  }

  async #create(event: Json): Promise<void> {
    const own = idOf(event);
    if (this.#asked.length + this.#responses.size >= mostResponses) {
      const message = `${mostResponses} responses of this session are under way. Wait for one to end.`;
      this.#tell(new GatewayError("rate_limit_exceeded", message, { shouldRetry: true }), own);
      return;
    }
    const eventId = own ?? `event_headrace_${++this.#ids}`;
    try {
      const booked = await this.#book(limitIn(memberOf(event, "response"), this.#maxTokens));
      if (this.#isOver) {
        await booked.settle("cancelled", nothingUsed);
        return;
      }
      this.#asked.push({ eventId, isOurId: own === null, booked });
      this.#pass({ ...event, event_id: eventId });
    } catch (error) {
      this.#fail(this.#options.toGatewayError(error), closing.refused, own);
    }
  }

  async #book(maxTokens: number | undefined): Promise<BookedResponse> {
    const { deps, models, tagHeader } = this.#options;
    const line = this.#options.line();
    let principal: Principal | undefined;
    try {
      principal = await this.#options.principal();
      const model = this.#modelNow(principal);
      const upstream = models.deployment.engine.name;
      const { promptTokens } = this.#said;
      return await bookResponse({ principal, model, upstream, tagHeader, promptTokens, maxTokens }, line, deps);
    } catch (thrown) {
      const error = this.#options.toGatewayError(thrown);
      line.line["model"] = models.model.id;
      if (principal && !line.isOnLedger) this.#options.refused(line, principal, error);
      line.finish(error);
      throw error;
    }
  }

  /** The model with its price of now. Throws where the principal may not use it there any more. */
  #modelNow(principal: Principal): Model {
    const { deps, models } = this.#options;
    const { id } = models.model;
    const model = requireModel(principal, deps.catalog.get(id), id);
    if (model.deployments.some((one) => isSame(one, models.deployment))) return model;
    throw new GatewayError(
      "service_unavailable",
      `\`${shown(id)}\` no longer runs where this session is connected. Open another session.`,
    );
  }

  // Towards the client.

  #ofServer(bytes: Uint8Array): void | Promise<void> {
    let event: Json;
    try {
      event = readEvent(bytes);
    } catch {
      this.#fail(serverFault("The model server sent what is no event."), closing.serverFault);
      return;
    }
    const type = String(event["type"]);
    switch (type) {
      case "session.created":
      case "session.updated":
      case "transcription_session.updated":
      case "transcription_session.created":
        this.#give({
          ...event,
          session: forClient(memberOf(event, "session"), this.#options.models, this.#transcriber),
        });
        return;
      // The limits of the operator at the server are none of the client's.
      case "rate_limits.updated":
        return;
      case "response.created":
        return this.#created(event);
      case "response.done":
        return this.#done(event);
      case "conversation.item.input_audio_transcription.delta":
      case "transcription.delta":
        this.#said.wrote(event["delta"]);
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

  /** What somebody asked for begins, or what the server began by itself, as it heard that it was its turn. */
  async #created(event: Json): Promise<void> {
    const id = responseId(event);
    const asked = this.#asked.shift();
    try {
      const booked = asked?.booked ?? (await this.#book(this.#maxTokens));
      const forgotten = this.#responses.get(id);
      this.#responses.set(id, booked);
      // A server that begins one twice tells the usage of one alone.
      await forgotten?.settle("failed", forgotten.usageSoFar, serverFault("The model server began a response twice."));
      if (this.#isOver) this.#cancelAtServer(id);
      this.#give(this.#named(event));
    } catch (error) {
      this.#cancelAtServer(id);
      this.#fail(this.#options.toGatewayError(error), closing.refused);
    }
  }

  async #done(event: Json): Promise<void> {
    const response = memberOf(event, "response");
    const id = responseId(event);
    const { status, usage } = response;
    const booked = this.#responses.get(id) ?? this.#asked.shift()?.booked;
    this.#responses.delete(id);
    if (booked) {
      const isFailed = status === "failed";
      const told = toldUsage(usage) ?? (isFailed ? nothingUsed : booked.usageSoFar);
      this.#said.answered(told);
      if (isFailed) await booked.settle("failed", told, serverFault("The model server failed."));
      else if (this.#isOver) await booked.settle(this.#ending.outcome, told, this.#ending.error);
      else await booked.settle("completed", told);
    }
    this.#give(this.#named(event));
    this.#endIfAlone();
  }

  /** Some servers name the model in each response. */
  #named(event: Json): Json {
    const response = memberOf(event, "response");
    if (typeof response["model"] !== "string") return event;
    return { ...event, response: { ...response, model: this.#options.models.name } };
  }

  async #transcribed(event: Json, text: unknown): Promise<void> {
    const estimate = this.#said.transcribed(text);
    const refusal = await this.#bookTranscript(toldUsage(event["usage"]) ?? estimate);
    this.#give(event);
    if (refusal !== undefined) this.#fail(this.#options.toGatewayError(refusal), closing.refused);
  }

  /** Resolves with what ends the session: its limits do not admit it, or it could not be written. */
  async #bookTranscript(usage: TokenUsage): Promise<unknown> {
    const { deps, models, tagHeader } = this.#options;
    try {
      const principal = this.#lastPrincipal ?? (await this.#options.principal());
      const model = this.#transcriber ?? deps.catalog.get(models.model.id) ?? models.model;
      const upstream = models.deployment.engine.name;
      const { promptTokens, completionTokens } = usage;
      const booking = { principal, model, upstream, tagHeader, promptTokens, maxTokens: completionTokens };
      return await bookTold(booking, usage, this.#options.line(), deps);
    } catch (error) {
      return error;
    }
  }

  #goesOn(event: Json, bytes: Uint8Array): void | Promise<void> {
    const booked = this.#responses.get(String(event["response_id"]));
    this.#client?.send(bytes);
    const goesOn = booked?.says(event) ?? "goes_on";
    if (goesOn === "goes_on" || !booked) return;
    if (goesOn === "spent") this.#spent(event);
    else return this.#whenKnown(booked, goesOn, event);
  }

  async #whenKnown(booked: BookedResponse, known: Promise<void>, event: Json): Promise<void> {
    let answer: "goes_on" | "spent" | Promise<void> = known;
    while (answer instanceof Promise) {
      await answer;
      answer = booked.looksAgain();
    }
    if (answer === "spent") this.#spent(event);
  }

  #spent(event: Json): void {
    this.#cancelAtServer(String(event["response_id"]));
    const message = "A quota of this key or its account is spent: the response ends here. GET /v1/limits shows quotas.";
    this.#fail(new GatewayError("insufficient_quota", message), closing.refused);
  }

  /** What it refused before it began costs nothing. */
  #failedAtServer(event: Json): void {
    const error = memberOf(event, "error");
    const eventId = error["event_id"];
    const at = this.#asked.findIndex((asked) => asked.eventId === eventId);
    const [asked] = at < 0 ? [] : this.#asked.splice(at, 1);
    if (asked) void asked.booked.settle("failed", nothingUsed, serverFault("The model server refused it."));
    const own = asked?.isOurId ? { ...event, error: { ...error, event_id: null } } : event;
    const { engine } = this.#options.models.deployment;
    this.#client?.send(Buffer.from(engine.redact(JSON.stringify(own))));
    this.#endIfAlone();
  }

  // The end.

  /** What has ended since it was opened ends it. */
  async #check(): Promise<void> {
    if (this.#checking || this.#isOver) return;
    this.#checking = true;
    try {
      const principal = await this.#options.principal();
      this.#lastPrincipal = principal;
      const { deps, models } = this.#options;
      const { id } = models.model;
      // One that nobody has at the moment says nothing of who may use it.
      const model = deps.catalog.get(id);
      if (model) requireModel(principal, model, id);
    } catch (thrown) {
      const error = this.#options.toGatewayError(thrown);
      // A database that is away for a moment says nothing of a key.
      if (endsSession.has(error.code)) this.#fail(error, closing.refused);
    } finally {
      this.#checking = false;
    }
  }

  #expire(message: string): void {
    if (this.#isOver) return;
    const error = { type: "invalid_request_error", code: "session_expired", message, param: null, event_id: null };
    this.#give({ type: "error", event_id: this.#newId(), error });
    this.#end(closing.normal, "the session has expired");
    this.#leave("cancelled", undefined);
  }

  #fail(error: GatewayError, code: number, eventId: string | null = null): void {
    if (this.#isOver) return;
    this.#tell(error, eventId);
    this.#end(code, error.code);
    this.#leave("failed", error);
  }

  #tell(error: GatewayError, eventId: string | null): void {
    this.#give({
      type: "error",
      event_id: this.#newId(),
      error: { ...this.#options.errorOf(error), event_id: eventId },
    });
  }

  #newId(): string {
    return `event_${crypto.randomUUID().replaceAll("-", "")}`;
  }

  #end(code: number, reason: string): void {
    this.#client?.close(code, reason);
  }

  /** The client is gone, or was told to go: what is under way is broken off, and its server may still tell what it used. */
  #leave(outcome: UsageOutcome, error: GatewayError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ending = { outcome, error };
    for (const timer of this.#timers) clearTimeout(timer);
    this.#options.deps.stopping.remove(this);
    this.#fromClient.stop();
    this.#client = undefined;
    this.#fromServer.goOn();
    for (const id of this.#responses.keys()) this.#cancelAtServer(id);
    if (this.#asked.length > 0) this.#server?.send(Buffer.from('{"type":"response.cancel"}'));
    this.#linger = setTimeout(() => {
      this.#settleAll(outcome, error);
      this.#endIfAlone();
    }, this.#times.lingerMs);
    this.#endIfAlone();
  }

  #cancelAtServer(id: string): void {
    this.#server?.send(Buffer.from(JSON.stringify({ type: "response.cancel", response_id: id })));
  }

  /** A session without a client ends once nothing is under way. */
  #endIfAlone(): void {
    if (!this.#isOver || this.#asked.length + this.#responses.size > 0) return;
    clearTimeout(this.#linger);
    this.#fromServer.stop();
    this.#server?.close(closing.normal, "");
  }

  #settleAll(outcome: UsageOutcome, error: GatewayError | undefined): void {
    const open = [...this.#responses.values(), ...this.#asked.map(({ booked }) => booked)];
    this.#responses.clear();
    this.#asked.length = 0;
    for (const booked of open) void booked.settle(outcome, booked.usageSoFar, error);
  }

  #serverClosed(code: number): void {
    // A server that writes for as long as it hears tells the usage at the end alone.
    if (this.#said.isWriting) void this.#bookTranscript(this.#said.transcribed(undefined));
    const wasUnderWay = this.#responses.size + this.#asked.length > 0;
    const isPlain = code === closing.normal || code === closing.goingAway;
    const error = serverFault("The connection to the model server ended.");
    if (this.#isOver) this.#settleAll(this.#ending.outcome, this.#ending.error);
    else this.#settleAll("failed", error);
    if (wasUnderWay || !isPlain) this.#fail(error, closing.serverFault);
    else {
      this.#end(code, "the model server ended the session");
      this.#leave("cancelled", undefined);
    }
    this.#server = undefined;
    this.#endIfAlone();
    this.#options.over();
  }

  #nowMs(): number {
    return this.#options.deps.clock.monotonicMs();
  }
}

const nothingUsed: TokenUsage = { promptTokens: 0, completionTokens: 0, estimated: true };
const endsSession: ReadonlySet<string> = new Set([
  ...["invalid_api_key", "token_expired", "insufficient_scope"],
  ...["model_not_found", "permission_denied"],
]);

/**
 * Throws `invalid_request`. What is nested too deeply can be read, and not written again; and millions of values would hold up
 * everybody while they are: both are seen before the event is parsed.
 */
function readEvent(bytes: Uint8Array): Json {
  let event: unknown;
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
    scanObject(text, { depth: mostDepth, ...bodyMass });
    event = JSON.parse(text);
  } catch (error) {
    const why = error instanceof JsonTextError ? ` This one cannot be used: ${error.message}.` : "";
    throw invalidRequest(`A message must be an event: a JSON object with a type.${why}`);
  }
  if (isJson(event) && typeof event["type"] === "string") return event;
  throw invalidRequest("A message must be an event: a JSON object with a type.");
}

function idOf({ event_id: id }: Json): string | null {
  return typeof id === "string" && id.length <= 512 ? id : null;
}

function responseId(event: Json): string {
  return String(memberOf(event, "response")["id"]);
}

/** By the name of now, and of the preview; `usual` where it names neither. `inf`, and what is no limit, says that there is none. */
function limitIn(
  { max_output_tokens: limit, max_response_output_tokens: older }: Json,
  usual: number | undefined,
): number | undefined {
  const said = limit ?? older;
  if (said === undefined || said === null) return usual;
  return typeof said === "number" && Number.isSafeInteger(said) && said > 0 ? said : undefined;
}

function isSame(one: Deployment, other: Deployment): boolean {
  return one.engine === other.engine && one.model === other.model;
}

function serverFault(message: string): GatewayError {
  return new GatewayError("upstream_error", message);
}
