// The responses of a realtime session, requested or running. Charges them and transcripts.
import { fieldError, GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { Principal } from "../../domain/principal.ts";
import type { TokenUsage, UsageOutcome } from "../../domain/usage/usage.ts";
import { requireModel } from "../../policy/authorize.ts";
import type { InferenceDeps } from "../call.ts";
import {
  type BookedResponse,
  type BookingDeps,
  bookReported,
  bookResponse,
  type RequestLine,
} from "./booked-response.ts";
import { responseIdOf, serverFault } from "./events.ts";
import type { SessionModels } from "./realtime-models.ts";
import { atLeastSaid, type Json, memberOf, reportedUsage } from "./reported-usage.ts";
import { SaidSoFar } from "./said-so-far.ts";

export interface SessionResponsesOptions {
  deps: BookingDeps & Pick<InferenceDeps, "catalog">;
  models: SessionModels;
  principal(): Principal | Promise<Principal>;
  /** Checks the credential in the same way as `principal`, but does not record that the key was used. */
  holds(): Principal | Promise<Principal>;
  /** Returns the log line, trace and metrics of a new response. */
  line(): RequestLine;
  /** Called when a response was refused before it was recorded in the ledger. */
  refused(line: RequestLine, principal: Principal, error: GatewayError): void;
  tagHeader: string | null;
  toGatewayError(thrown: unknown): GatewayError;
}

/** A response that the client requested and that the server has not begun yet. */
interface Asked {
  readonly eventId: string;
  readonly booked: BookedResponse;
}

/** The result with which running responses are settled when the session ends. */
export interface SessionEnd {
  outcome: UsageOutcome;
  error: GatewayError | undefined;
}

const nothingUsed: TokenUsage = { promptTokens: 0, completionTokens: 0, estimated: true };

export class SessionResponses {
  readonly said = new SaidSoFar();
  /** The token limit that the client set last, for responses that set none. Undefined without a limit. */
  maxTokens: number | undefined;
  /** The transcription model of the session. Undefined if there is none. */
  transcriber: Model | undefined;
  readonly #options: SessionResponsesOptions;
  readonly #asked: Asked[] = [];
  readonly #underWay = new Map<string, BookedResponse>();
  /**
   * Responses for which the server has sent nothing since it reported an error. LocalAI ends a failed response with an
   * error and without `response.done`. But the error may have another reason, so these responses stay open until the
   * session ends.
   */
  readonly #doubtful = new Set<BookedResponse>();
  /** The principal that the last check of the credential returned. */
  #lastPrincipal: Principal | undefined;

  constructor(options: SessionResponsesOptions) {
    this.#options = options;
  }

  /** Number of requested and running responses, except those that have probably failed at the server. */
  get likelyCount(): number {
    return this.count - this.#doubtful.size;
  }

  /** Number of requested and running responses. */
  get count(): number {
    return this.#asked.length + this.#underWay.size;
  }

  get areAsked(): boolean {
    return this.#asked.length > 0;
  }

  get idsUnderWay(): Iterable<string> {
    return this.#underWay.keys();
  }

  /**
   * Admits a response that the client requests. Rejects with the refusal. Resolves to false if the session has ended
   * meanwhile.
   */
  async ask(eventId: string, maxTokens: number | undefined, isOver: () => boolean): Promise<boolean> {
    const booked = await this.#book(maxTokens);
    if (isOver()) {
      await booked.settle("cancelled", nothingUsed);
      return false;
    }
    this.#asked.push({ eventId, booked });
    return true;
  }

  /**
   * Called when the server begins a response: the first one that was requested, or a response of its own after user
   * speech. Rejects with the refusal.
   */
  async begin(id: string): Promise<void> {
    const booked = this.#takeAsked()?.booked ?? (await this.#book(this.maxTokens));
    const forgotten = this.#underWay.get(id);
    if (forgotten) this.#doubtful.delete(forgotten);
    this.#underWay.set(id, booked);
    // If a server begins the same response twice, it reports the usage only once.
    await forgotten?.settle("failed", forgotten.usageSoFar, serverFault("The model server began a response twice."));
  }

  /** Returns the running response to which this event belongs, or undefined. */
  of(event: Json): BookedResponse | undefined {
    const booked = this.#underWay.get(responseIdOf(event));
    if (booked) this.#doubtful.delete(booked);
    return booked;
  }

  /** Called if the server reported an error that is not the refusal of a requested response. */
  doubt(): void {
    for (const booked of this.#open()) this.#doubtful.add(booked);
  }

  #open(): BookedResponse[] {
    return [...this.#underWay.values(), ...this.#asked.map(({ booked }) => booked)];
  }

  #takeAsked(at = 0): Asked | undefined {
    const [asked] = this.#asked.splice(at, 1);
    if (asked) this.#doubtful.delete(asked.booked);
    return asked;
  }

  /**
   * Settles a response that the server has ended. `end` is set if the session is ending. Resolves when the end is in
   * the ledger.
   */
  async done(event: Json, end: SessionEnd | undefined): Promise<void> {
    const { status, usage } = memberOf(event, "response");
    const booked = this.of(event) ?? this.#takeAsked()?.booked;
    this.#underWay.delete(responseIdOf(event));
    if (!booked) return;
    const isFailed = status === "failed";
    const soFar = booked.usageSoFar;
    // If the user interrupts a response before its first token, the server reports the response as cancelled with zero
    // usage.
    const isUndeclared = (isFailed || status === "cancelled") && soFar.completionTokens === 0;
    const reported = reportedUsage(usage);
    const unreportedUsage = isFailed ? nothingUsed : soFar;
    const bookedUsage = isUndeclared ? (reported ?? unreportedUsage) : reported ? atLeastSaid(reported, soFar) : soFar;
    this.said.answered(bookedUsage);
    if (isFailed) await booked.settle("failed", bookedUsage, serverFault("The model server failed."));
    else await booked.settle(end?.outcome ?? "completed", bookedUsage, end?.error);
  }

  /**
   * Called if the server refused a client event. If the event requested a response, the response costs nothing. Returns
   * false if it requested none.
   */
  refusedAtServer(eventId: unknown): boolean {
    const at = this.#asked.findIndex((asked) => asked.eventId === eventId);
    const asked = at < 0 ? undefined : this.#takeAsked(at);
    void asked?.booked.settle("failed", nothingUsed, serverFault("The model server refused it."));
    return asked !== undefined;
  }

  /**
   * Charges a transcript with the reported usage, or with an estimate. `text` is the whole text, if known. Resolves to
   * an error that must end the session, if limits are exceeded or the ledger cannot be written.
   */
  async transcribed(usage: unknown, text: unknown): Promise<unknown> {
    const estimate = this.said.transcribed(text);
    const reported = reportedUsage(usage);
    return await this.#bookTranscript(reported ? atLeastSaid(reported, estimate) : estimate);
  }

  /** Checks whether the credential still permits the session and its model. Rejects if it does not. */
  async holds(): Promise<void> {
    const principal = await this.#options.holds();
    this.#lastPrincipal = principal;
    const { deps, models } = this.#options;
    const { id } = models.model;
    // If the model is briefly missing in the catalog, the right to use it has not ended.
    const model = deps.catalog.get(id);
    if (model) requireModel(principal, model, id);
  }

  async #bookTranscript(usage: TokenUsage): Promise<unknown> {
    const { deps, models, tagHeader } = this.#options;
    try {
      const principal = this.#lastPrincipal ?? (await this.#options.principal());
      const model = this.transcriber ?? deps.catalog.get(models.model.id) ?? models.model;
      const upstream = models.deployment.engine.name;
      const { promptTokens, completionTokens } = usage;
      const booking = { principal, model, upstream, tagHeader, promptTokens, maxTokens: completionTokens };
      return await bookReported(booking, usage, this.#options.line(), deps);
    } catch (error) {
      return error;
    }
  }

  /** Settles all requested and running responses, each with the output that was delivered. */
  settleAll({ outcome, error }: SessionEnd): void {
    const open = this.#open();
    this.#underWay.clear();
    this.#asked.length = 0;
    this.#doubtful.clear();
    for (const booked of open) void booked.settle(outcome, booked.usageSoFar, error);
  }

  async #book(maxTokens: number | undefined): Promise<BookedResponse> {
    const { deps, models, tagHeader } = this.#options;
    const line = this.#options.line();
    let principal: Principal | undefined;
    try {
      principal = await this.#options.principal();
      const model = this.#modelNow(principal);
      const upstream = models.deployment.engine.name;
      const { promptTokens } = this.said;
      return await bookResponse({ principal, model, upstream, tagHeader, promptTokens, maxTokens }, line, deps);
    } catch (thrown) {
      const error = this.#options.toGatewayError(thrown);
      line.line["model"] = models.model.id;
      if (principal && !line.isOnLedger) this.#options.refused(line, principal, error);
      line.finish(error);
      throw error;
    }
  }

  /**
   * Returns the model with its current price. Throws if the principal may no longer use the model at this deployment.
   */
  #modelNow(principal: Principal): Model {
    const { deps, models } = this.#options;
    const { id } = models.model;
    const model = requireModel(principal, deps.catalog.get(id), id);
    requireUnguarded(model);
    if (model.deployments.some((one) => isSame(one, models.deployment))) return model;
    throw new GatewayError(
      "service_unavailable",
      `\`${shown(id)}\` no longer runs where this session is connected. Open another session.`,
    );
  }
}

/** Throws if the model has guardrails, because they cannot check the audio of a session. */
export function requireUnguarded({ id, policies }: Model): void {
  if (!policies?.guardrails) return;
  throw fieldError(
    "model",
    `\`${shown(id)}\` has guardrails, which cannot look at realtime sessions. Ask it over HTTP.`,
  );
}

function isSame(one: Deployment, other: Deployment): boolean {
  return one.engine === other.engine && one.model === other.model;
}
