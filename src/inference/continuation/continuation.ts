// Continues a streamed answer at another deployment after a model server broke off. The new part begins where the
// delivered text ends.

import { type MaybePromise, whenSettled } from "../../base/deferred.ts";
import { BlamelessError, GatewayError } from "../../base/errors.ts";
import type { Engine, EngineRequest, EngineResponse } from "../../domain/models/engine.ts";
import type { Deployment } from "../../domain/models/model.ts";
import { isConversation } from "../../domain/models/operation.ts";
import type { ContinuationOutcome } from "../../domain/usage/observer.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { AnswerStream, StreamObservation } from "../../requests/dialects/answer.ts";
import { lastPartUsage, streamUsage } from "../../requests/dialects/stream-usage.ts";
import { isEngineFault } from "../answer/engine-refusal.ts";
import { type Asking, askingOf, chatAlone, formatFor } from "../asking.ts";
import type { Continuing, Dispatched, Sender } from "../routing/attempt.ts";
import { type DispatchDeps, dispatch } from "../routing/dispatch.ts";
import { continuedBody, goesOnFrom, isContinuable, isWithinStop } from "./continued-body.ts";
import { SaidText } from "./said-text.ts";

/** Maximum continuations of one answer. Each continuation must read the whole prompt again. */
const maxContinuations = 3;
/** Milliseconds to wait for a token count. */
const maxCountMs = 1_000;

/** The request whose answer may be continued. */
export interface ContinuedRequest extends Sender {
  readonly request: DecodedRequest;
  readonly deps: DispatchDeps;
  /** Called before the search for another deployment. `usage` is the usage of the part before the break. */
  cutOff(dispatched: Dispatched, error: unknown, usage: TokenUsage): void;
  /** Called when another deployment continues the answer. */
  wentOn(dispatched: Dispatched): void;
  /** Called if another deployment was found, but the client has left meanwhile. */
  cameLate(dispatched: Dispatched): void;
}

type Body = Readonly<Record<string, unknown>>;

/**
 * The decision after a model server broke off. `at_limit`: the answer already has all tokens that the client allowed.
 * `spent`: the quota does not suffice for reading the prompt again.
 */
export type Verdict = "goes_on" | "cannot" | "at_limit" | "spent";

export class Continuation implements Continuing {
  readonly said: SaidText;
  readonly outcomes: ContinuationOutcome[] = [];
  /** Bytes (UTF-8) of the answer so far. */
  writtenBytes = 0;
  /** Tokens of the answer so far. `rereadTokens` counts the tokens of prompts that are read again. */
  writtenTokens = 0;
  rereadTokens = 0;
  /** True if a server broke off directly after the last token that the client allowed. */
  isAtLimit = false;
  /** Usage of the part that the last server generated. Undefined if one server generated the whole answer. */
  lastUsage: TokenUsage | undefined;
  readonly #open: ContinuedRequest;
  #times = 0;
  /** The index of the answer's part that is requested next. */
  #part = 0;
  /** True if all servers so far continued the last assistant message. False if one began a new message. */
  #prefills = true;
  #isUnderWay = false;
  /** The text that was delivered so far. Empty if the answer begins again from the start. */
  #text = "";
  /** The request as a chat or completion. Undefined if the answer begins again from the start. */
  #body: Body | undefined;
  /** The deployment that broke off. It is tried again if there is no other deployment. */
  #again: Deployment | undefined;
  #cut: Dispatched | undefined;

  constructor(open: ContinuedRequest) {
    this.#open = open;
    this.said = new SaidText(open.memoryAccount);
  }

  /** True while the gateway searches for a deployment that continues the answer. */
  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  get times(): number {
    return this.#times;
  }

  /** Reports whether the model server caused the error, and not the client, the request or the gateway. */
  isCut(error: unknown): boolean {
    if (this.#open.cancellation.cancelled || error instanceof BlamelessError) return false;
    return !(error instanceof GatewayError) || isEngineFault(error);
  }

  /**
   * Decides whether to continue. After "goes_on", the caller must call `dispatch`. `isBegun` is true if the client or
   * the guardrails have received part of the answer.
   */
  begins(cut: Dispatched, error: unknown, observed: AnswerStream, isBegun: boolean): Verdict {
    const verdict = isBegun ? this.#judged(cut, observed) : "goes_on";
    if (verdict === "at_limit") {
      this.isAtLimit = true;
      return verdict;
    }
    if (verdict === "cannot" || this.#times === maxContinuations) {
      this.outcomes.push("unfit");
      return "cannot";
    }
    this.#count(observed, isBegun);
    this.#isUnderWay = true;
    const most = this.writtenTokens > 0 ? this.#open.maxTokensOf?.(cut.model) : undefined;
    this.#isUnderWay = false;
    if (most !== undefined && most <= this.writtenTokens) return "spent";
    return this.#takesTurn(cut, error, observed, isBegun);
  }

  #takesTurn(cut: Dispatched, error: unknown, observed: AnswerStream, isBegun: boolean): Verdict {
    const { request, deps } = this.#open;
    const { engine, model } = cut.deployment;
    this.#open.cutOff(cut, error, lastPartUsage(request, observed));
    if (!deps.router.retryBudget(cut.model.id).take()) {
      this.#open.tried({ model: cut.model.id, result: "not_retried" });
      this.outcomes.push("failed");
      return "cannot";
    }
    if (isBegun) this.#prefills &&= engine.continues?.(model) === "last_message";
    else {
      this.#body = undefined;
      this.said.restart();
    }
    // The deployment has worked until now, so it may be tried again, even if the router suspends it.
    this.#again = cut.deployment;
    this.#cut = cut;
    this.#times++;
    return "goes_on";
  }

  /** Counts the tokens generated so far, and those that will be read again. */
  #count(observed: AnswerStream, isBegun: boolean): void {
    const { request } = this.#open;
    const soFar = isBegun && observed.deliveredBytes > 0 ? streamUsage(request, observed, false) : undefined;
    this.#part = isBegun ? (observed.cut?.length ?? 0) + 1 : 0;
    this.writtenBytes = soFar ? observed.deliveredBytes : 0;
    this.writtenTokens = soFar?.completionTokens ?? 0;
    this.rereadTokens = soFar ? soFar.promptTokens + soFar.completionTokens : 0;
  }

  /** Called when the answer has ended. */
  ends(observed: StreamObservation, ended: boolean): void {
    if (observed.cut) this.lastUsage = lastPartUsage(this.#open.request, observed, ended);
  }

  #judged({ translation }: Dispatched, observed: AnswerStream): Verdict {
    const { request, recording, seal } = this.#open;
    const text = this.said.whole;
    // Only a chat or completion can be continued. Either the client sent it, or its request was translated into one.
    const isAskedAlike =
      (translation === undefined) === (formatFor(request, inChat, request.model) === request.dialect);
    if (text === undefined || !isAskedAlike) return "cannot";
    const asked = parsed(askingOf(request, { engine: inChat, model: request.model, recording, seal }).body);
    const isFit = request.width === 1 && isContinuable(asked) && !isWithinStop(asked, text);
    if (text !== "" && !isFit) return "cannot";
    const written = streamUsage(request, observed, false).completionTokens;
    if (text !== "" && request.tokenLimit !== undefined && written >= request.tokenLimit) return "at_limit";
    this.#text = text;
    this.#body = asked;
    return "goes_on";
  }

  /**
   * Searches for a deployment that continues the answer, among those that the model has now. Rejects if there is none.
   */
  dispatch(): MaybePromise<Dispatched> {
    const { request, deps } = this.#open;
    const { model: before } = this.#cut as Dispatched;
    const model = this.#open.modelNow(before.id) ?? { ...before, deployments: [] };
    this.#isUnderWay = true;
    const next = dispatch(request, model, deps, this.#open);
    whenSettled(next, onNext, onNone, this);
    return next;
  }

  /**
   * Called with the deployment that continues the answer. If the client has left or got its end meanwhile, the
   * deployment is not used.
   */
  found(dispatched: Dispatched): void {
    this.#isUnderWay = false;
    if (this.#open.cancellation.cancelled) {
      this.#open.cameLate(dispatched);
      return;
    }
    this.said.isGiven = this.#text !== "";
    this.outcomes.push("continued");
    this.#open.wentOn(dispatched);
  }

  foundNone(): void {
    this.#isUnderWay = false;
    this.outcomes.push("failed");
  }

  /**
   * Returns the deployments that can continue the answer. Suspended deployments are left out, because they may not
   * work.
   */
  candidates(ranked: readonly Deployment[]): readonly Deployment[] {
    const { router } = this.#open.deps;
    const body = this.#body;
    const fit = body
      ? ranked.filter(({ engine, model }) => {
          if (this.#text === "") return engine.formats === undefined || engine.formats.chat !== undefined;
          const how = engine.continues?.(model);
          return how !== undefined && goesOnFrom(body, this.#text, how, this.#prefills);
        })
      : ranked;
    const well = fit.filter((deployment) => !router.resting(deployment));
    return well.length > 0 ? well : fit.filter(({ engine, model }) => this.#isAgain(engine.name, model));
  }

  #isAgain(engine: string, model: string): boolean {
    return this.#again?.engine.name === engine && this.#again.model === model;
  }

  /** True if only the rest of the answer is requested. */
  get asksRest(): boolean {
    return this.#body !== undefined;
  }

  sendRest({ engine, model }: Deployment, whole: EngineRequest): MaybePromise<EngineResponse> {
    const { cancellation, request } = this.#open;
    const how = engine.continues?.(model);
    if (this.#text === "" || !how) return engine.send(whole, cancellation);
    const asked = parsed(whole.body);
    const rest = (): EngineRequest => {
      return { ...whole, body: continuedBody(asked, this.#text, how, this.writtenTokens) };
    };
    const sent = rest();
    const counted = this.#counted(engine, sent, whole);
    // The request waits for the count. An estimate may leave too high a limit if one event had several tokens.
    if (!counted || request.tokenLimit === undefined) return engine.send(sent, cancellation);
    return counted.then(() => engine.send(rest(), cancellation));
  }

  /**
   * Counts the tokens of the answer's parts at the server that continues, as the difference between two prompts.
   * Resolves when they are counted, or after `maxCountMs`. Returns undefined if the server cannot count.
   */
  #counted(engine: Engine, sent: EngineRequest, whole: EngineRequest): Promise<void> | undefined {
    const { operation } = sent;
    if (!engine.countTokens || !isConversation(operation)) return undefined;
    const { countedPrompts } = this.said;
    const count = async (index: number, { body }: EngineRequest) => {
      try {
        countedPrompts[index] = await engine.countTokens?.({ ...sent, operation, body }, this.#open.cancellation);
      } catch {
        // If counting fails, the tokens are estimated.
      }
    };
    const [part, first] = [this.#part, countedPrompts[0]];
    const counts = [count(part, sent), ...(first === undefined ? [count(0, whole)] : [])];
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, maxCountMs);
      void Promise.all(counts).then(() => {
        clearTimeout(timer);
        const [prompt, begun] = [countedPrompts[0], countedPrompts[part]];
        if (prompt !== undefined && begun !== undefined)
          this.writtenTokens = Math.max(this.writtenTokens, begun - prompt);
        resolve();
      });
    });
  }
}

/** The formats for continuing an answer: only chat completions, whatever other formats the engine supports. */
const inChat = { formats: chatAlone };

function parsed(body: Asking["body"]): Body {
  return JSON.parse(typeof body === "string" ? body : body.solid.text) as Body;
}

function onNext(dispatched: Dispatched, continuation: Continuation): void {
  continuation.found(dispatched);
}

function onNone(_: unknown, continuation: Continuation): void {
  continuation.foundNone();
}
