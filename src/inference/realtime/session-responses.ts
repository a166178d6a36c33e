// The responses of a session: those that are asked for, those under way, and what is booked of them and of transcripts.
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
import { SaidSoFar } from "./said-so-far.ts";
import { atLeastSaid, type Json, memberOf, reportedUsage } from "./told-usage.ts";

export interface SessionResponsesOptions {
  deps: BookingDeps & Pick<InferenceDeps, "catalog">;
  models: SessionModels;
  principal(): Principal | Promise<Principal>;
  /** Does what `principal` does, without recording a use of the key. */
  holds(): Principal | Promise<Principal>;
  /** A request of its own, for each response. */
  line(): RequestLine;
  /** Told of a response that was refused before it was on the ledger. */
  refused(line: RequestLine, principal: Principal, error: GatewayError): void;
  tagHeader: string | null;
  toGatewayError(thrown: unknown): GatewayError;
}

/** A response that the client asked for, until the server says that it begins. */
interface Asked {
  readonly eventId: string;
  readonly booked: BookedResponse;
}

/** How what is under way ends, where the session does. */
export interface SessionEnd {
  outcome: UsageOutcome;
  error: GatewayError | undefined;
}

const nothingUsed: TokenUsage = { promptTokens: 0, completionTokens: 0, estimated: true };

export class SessionResponses {
  readonly said = new SaidSoFar();
  /** The most tokens of a response that does not say so itself, as the client last asked for it. */
  maxTokens: number | undefined;
  /** The model that makes texts of what is heard, where the session names one. */
  transcriber: Model | undefined;
  readonly #options: SessionResponsesOptions;
  readonly #asked: Asked[] = [];
  readonly #underWay = new Map<string, BookedResponse>();
  /** Who it was when the credential was last looked at. */
  #lastPrincipal: Principal | undefined;

  constructor(options: SessionResponsesOptions) {
    this.#options = options;
  }

  /** Those that are asked for or under way. */
  get count(): number {
    return this.#asked.length + this.#underWay.size;
  }

  get areAsked(): boolean {
    return this.#asked.length > 0;
  }

  get idsUnderWay(): Iterable<string> {
    return this.#underWay.keys();
  }

  /** The client asks for one. Rejects with the refusal; resolves with whether it may be asked for still. */
  async ask(eventId: string, maxTokens: number | undefined, isOver: () => boolean): Promise<boolean> {
    const booked = await this.#book(maxTokens);
    if (isOver()) {
      await booked.settle("cancelled", nothingUsed);
      return false;
    }
    this.#asked.push({ eventId, booked });
    return true;
  }

  /** The server begins what was asked for first, or one by itself, as it heard that it was its turn. Rejects with the refusal. */
  async begin(id: string): Promise<void> {
    const booked = this.#asked.shift()?.booked ?? (await this.#book(this.maxTokens));
    const forgotten = this.#underWay.get(id);
    this.#underWay.set(id, booked);
    // A server that begins one twice tells the usage of one alone.
    await forgotten?.settle("failed", forgotten.usageSoFar, serverFault("The model server began a response twice."));
  }

  /** The response that an event is of. */
  of(event: Json): BookedResponse | undefined {
    return this.#underWay.get(responseIdOf(event));
  }

  /** One is over, by the account of its server. `end`: how, where the session is over. Resolves when it is on the ledger. */
  async done(event: Json, end: SessionEnd | undefined): Promise<void> {
    const { status, usage } = memberOf(event, "response");
    const booked = this.of(event) ?? this.#asked.shift()?.booked;
    this.#underWay.delete(responseIdOf(event));
    if (!booked) return;
    const isFailed = status === "failed";
    const soFar = booked.usageSoFar;
    // A user who interrupts a response before its first token has it cancelled, with a usage of zeros.
    const isUndeclared = (isFailed || status === "cancelled") && soFar.completionTokens === 0;
    const reported = reportedUsage(usage);
    const unreportedUsage = isFailed ? nothingUsed : soFar;
    const bookedUsage = isUndeclared ? (reported ?? unreportedUsage) : reported ? atLeastSaid(reported, soFar) : soFar;
    this.said.answered(bookedUsage);
    if (isFailed) await booked.settle("failed", bookedUsage, serverFault("The model server failed."));
    else await booked.settle(end?.outcome ?? "completed", bookedUsage, end?.error);
  }

  /** The server refused what the client asked for by this event, before it began: that costs nothing. */
  refusedAtServer(eventId: unknown): void {
    const at = this.#asked.findIndex((asked) => asked.eventId === eventId);
    const [asked] = at < 0 ? [] : this.#asked.splice(at, 1);
    void asked?.booked.settle("failed", nothingUsed, serverFault("The model server refused it."));
  }

  /**
   * A transcript is over; `text`: the whole of it, where it is known. What its server tells of its usage is booked, else an
   * estimate. Resolves with what ends the session: its limits do not admit it, or it could not be written.
   */
  async transcribed(usage: unknown, text: unknown): Promise<unknown> {
    const estimate = this.said.transcribed(text);
    const reported = reportedUsage(usage);
    return await this.#bookTranscript(reported ? atLeastSaid(reported, estimate) : estimate);
  }

  /** Resolves where the credential still opens the session and its model; rejects where it does not. */
  async holds(): Promise<void> {
    const principal = await this.#options.holds();
    this.#lastPrincipal = principal;
    const { deps, models } = this.#options;
    const { id } = models.model;
    // One that nobody has at the moment says nothing of who may use it.
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

  /** With what was delivered of them. */
  settleAll({ outcome, error }: SessionEnd): void {
    const open = [...this.#underWay.values(), ...this.#asked.map(({ booked }) => booked)];
    this.#underWay.clear();
    this.#asked.length = 0;
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

  /** The model with its price of now. Throws where the principal may not use it there any more. */
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

/** A session is audio as much as text, which guardrails cannot look at. */
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
