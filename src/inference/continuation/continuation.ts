// Continues a streamed answer at another deployment after its model server broke off, exactly where the delivered text
// ends.

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

/** Maximum continuations: an answer that breaks off more often is not worth reading the prompt again. */
const maxContinuations = 3;
/** Milliseconds after which a token count is no longer awaited. */
const maxCountMs = 1_000;

/** The request whose answer is continued. */
export interface ContinuedRequest extends Sender {
  readonly request: DecodedRequest;
  readonly deps: DispatchDeps;
  /** Called before the gateway looks for another deployment: the current one broke off after this usage. */
  cutOff(dispatched: Dispatched, error: unknown, usage: TokenUsage): void;
  /** Called when another deployment continues. */
  wentOn(dispatched: Dispatched): void;
  /** Called when another deployment would continue, but the client does not want the answer any more. */
  cameLate(dispatched: Dispatched): void;
}

type Body = Readonly<Record<string, unknown>>;

/** The decision after a break. `spent` means that a quota has too little left to read the prompt again. */
export type Verdict = "goes_on" | "cannot" | "at_limit" | "spent";

export class Continuation implements Continuing {
  readonly said: SaidText;
  readonly outcomes: ContinuationOutcome[] = [];
  /** UTF-8 bytes of the answer so far. */
  writtenBytes = 0;
  /** Tokens of the answer so far, and of prompts that were or are being read, in addition to the request's own. */
  writtenTokens = 0;
  rereadTokens = 0;
  /** True if a server broke off after the last token that the client allowed. */
  isAtLimit = false;
  /** Usage of the server that ends the answer, if other servers contributed; undefined if one server did everything. */
  lastUsage: TokenUsage | undefined;
  readonly #open: ContinuedRequest;
  #times = 0;
  /** The number of the requested part, among the parts that the client gets. */
  #part = 0;
  /** True if all servers so far continued a last assistant message as the beginning of their answer. */
  #prefills = true;
  #isUnderWay = false;
  /** The delivered text; empty if no text was delivered, so that the answer begins anew. */
  #text = "";
  /** The request as a chat or completion; undefined if no part of an answer was delivered. */
  #body: Body | undefined;
  /** The deployment that broke off, if it worked until then; it is asked again if there is no other. */
  #again: Deployment | undefined;
  #cut: Dispatched | undefined;

  constructor(open: ContinuedRequest) {
    this.#open = open;
    this.said = new SaidText(open.memoryAccount);
  }

  /** True while the gateway looks for a deployment that continues. */
  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  get times(): number {
    return this.#times;
  }

  /** Reports whether the model server is at fault, and not the client, the request or the gateway. */
  isCut(error: unknown): boolean {
    if (this.#open.cancellation.cancelled || error instanceof BlamelessError) return false;
    return !(error instanceof GatewayError) || isEngineFault(error);
  }

  /**
   * Decides whether to continue. `isBegun` is true if the client or the guardrails have a part of the answer. If the
   * result is "goes_on", call `dispatch`.
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
    // The deployment worked until now, even if other requests have suspended it.
    this.#again = cut.deployment;
    this.#cut = cut;
    this.#times++;
    return "goes_on";
  }

  /** Counts the tokens that were generated so far and those read for them. */
  #count(observed: AnswerStream, isBegun: boolean): void {
    const { request } = this.#open;
    const soFar = isBegun && observed.deliveredBytes > 0 ? streamUsage(request, observed, false) : undefined;
    this.#part = isBegun ? (observed.cut?.length ?? 0) + 1 : 0;
    this.writtenBytes = soFar ? observed.deliveredBytes : 0;
    this.writtenTokens = soFar?.completionTokens ?? 0;
    this.rereadTokens = soFar ? soFar.promptTokens + soFar.completionTokens : 0;
  }

  /** Called when the answer is over, however it ended. */
  ends(observed: StreamObservation, ended: boolean): void {
    if (observed.cut) this.lastUsage = lastPartUsage(this.#open.request, observed, ended);
  }

  #judged({ translation }: Dispatched, observed: AnswerStream): Verdict {
    const { request, recording, seal } = this.#open;
    const text = this.said.whole;
    // Only chats and completions can be continued, so the client's request must be one or must have been translated to
    // one.
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
   * Settles with the deployment that continues. It is one that the model has now, because operators may have changed
   * the deployments.
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

  /** The deployment works for the client from here on, unless the client left or got its end at the same moment. */
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
   * Returns the deployments that can continue. Suspended ones are not asked, because it is unknown whether they work.
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
    // If several tokens came in one event, the estimated remaining limit would be too high.
    if (!counted || request.tokenLimit === undefined) return engine.send(sent, cancellation);
    return counted.then(() => engine.send(rest(), cancellation));
  }

  /**
   * Determines the tokens of each part of the answer from the prompts that follow it. The server that continues counts
   * them, in parallel to the request. Undefined if it cannot count; resolves when the counts are there, or when
   * counting takes too long.
   */
  #counted(engine: Engine, sent: EngineRequest, whole: EngineRequest): Promise<void> | undefined {
    const { operation } = sent;
    if (!engine.countTokens || !isConversation(operation)) return undefined;
    const { countedPrompts } = this.said;
    const count = async (index: number, { body }: EngineRequest) => {
      try {
        countedPrompts[index] = await engine.countTokens?.({ ...sent, operation, body }, this.#open.cancellation);
      } catch {
        // Without a count, the delivered tokens are estimated.
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

/** An engine that continues is asked with chat completions, whatever else it speaks. */
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
