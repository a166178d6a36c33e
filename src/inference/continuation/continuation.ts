// Goes on with a streamed answer at another deployment where its model server broke off, exactly behind what was delivered.

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

/** An answer that breaks off more often than this is not worth the prompts that are read for it. */
const maxContinuations = 3;
/** A count that takes longer is not waited for. */
const maxCountMs = 1_000;

/** The request whose answer is continued. */
export interface ContinuedRequest extends Sender {
  readonly request: DecodedRequest;
  readonly deps: DispatchDeps;
  /** What took it broke off, having used so much. Called before it is looked for another one. */
  cutOff(dispatched: Dispatched, error: unknown, usage: TokenUsage): void;
  /** Another one goes on. */
  wentOn(dispatched: Dispatched): void;
  /** Another one would have gone on, and its client does not want it any more. */
  cameLate(dispatched: Dispatched): void;
}

type Body = Readonly<Record<string, unknown>>;

/** What there is behind a break; `spent`: a quota has nothing left for the prompt that would be read once more. */
export type Verdict = "goes_on" | "cannot" | "at_limit" | "spent";

export class Continuation implements Continuing {
  readonly said: SaidText;
  readonly outcomes: ContinuationOutcome[] = [];
  /** UTF-8 bytes of the answer so far. */
  writtenBytes = 0;
  /** Tokens of the answer so far, and of prompts that were read, and are read now, beside the request's own. */
  writtenTokens = 0;
  rereadTokens = 0;
  /** A server broke off behind the last token that its client allowed. */
  isAtLimit = false;
  /** What the server has used that ends the answer, where others had a part in it; undefined: all of it. */
  lastUsage: TokenUsage | undefined;
  readonly #open: ContinuedRequest;
  #times = 0;
  /** The number of the part that is asked for, among those that the client gets. */
  #part = 0;
  /** Whether whoever answered so far took a last message of the assistant's as the begin of its answer. */
  #prefills = true;
  #isUnderWay = false;
  /** What was delivered; empty: nothing was, and it begins anew. */
  #text = "";
  /** The request as chats and completions are asked; undefined: nothing of an answer was delivered. */
  #body: Body | undefined;
  /** That which broke off, where it was well until then: it is asked again where there is no other. */
  #again: Deployment | undefined;
  #cut: Dispatched | undefined;

  constructor(open: ContinuedRequest) {
    this.#open = open;
    this.said = new SaidText(open.memoryAccount);
  }

  /** Whether a deployment is being looked for. */
  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  get times(): number {
    return this.#times;
  }

  /** Whether the fault is one of the model server, and not of its client, of the request or of the gateway. */
  isCut(error: unknown): boolean {
    if (this.#open.cancellation.cancelled || error instanceof BlamelessError) return false;
    return !(error instanceof GatewayError) || isEngineFault(error);
  }

  /** `isBegun`: whether its client has a part of it, or guardrails have. To be followed by `dispatch` where it goes on. */
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
    // It was well until now, also where others that it broke off for put it to rest.
    this.#again = cut.deployment;
    this.#cut = cut;
    this.#times++;
    return "goes_on";
  }

  /** What was written, and read for it, so far. */
  #count(observed: AnswerStream, isBegun: boolean): void {
    const { request } = this.#open;
    const soFar = isBegun && observed.deliveredBytes > 0 ? streamUsage(request, observed, false) : undefined;
    this.#part = isBegun ? (observed.cut?.length ?? 0) + 1 : 0;
    this.writtenBytes = soFar ? observed.deliveredBytes : 0;
    this.writtenTokens = soFar?.completionTokens ?? 0;
    this.rereadTokens = soFar ? soFar.promptTokens + soFar.completionTokens : 0;
  }

  /** The answer is over, however it ended. */
  ends(observed: StreamObservation, ended: boolean): void {
    if (observed.cut) this.lastUsage = lastPartUsage(this.#open.request, observed, ended);
  }

  #judged({ translation }: Dispatched, observed: AnswerStream): Verdict {
    const { request, recording, seal } = this.#open;
    const text = this.said.whole;
    // Only chats and completions are gone on with: so to the client it has to have been one, or translated from one.
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

  /** Settles with the deployment that goes on: one that the model has now, as operators may have said otherwise meanwhile. */
  dispatch(): MaybePromise<Dispatched> {
    const { request, deps } = this.#open;
    const { model: before } = this.#cut as Dispatched;
    const model = this.#open.modelNow(before.id) ?? { ...before, deployments: [] };
    this.#isUnderWay = true;
    const next = dispatch(request, model, deps, this.#open);
    whenSettled(next, onNext, onNone, this);
    return next;
  }

  /** It is at the client from here on, unless that left, or was told of an end, in the same moment. */
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

  /** Those that can go on; what is at rest is not asked, as nobody knows that it works. */
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

  /** Whether the rest is asked for, and not all of it. */
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
    // The limit would be too high by what came with other tokens in one event.
    if (!counted || request.tokenLimit === undefined) return engine.send(sent, cancellation);
    return counted.then(() => engine.send(rest(), cancellation));
  }

  /**
   * How many tokens each part of the answer had is told by the prompts behind it: they are counted by whoever goes on, beside the
   * request. Undefined where it cannot count; resolves once it has, or when that takes too long.
   */
  #counted(engine: Engine, sent: EngineRequest, whole: EngineRequest): Promise<void> | undefined {
    const { operation } = sent;
    if (!engine.countTokens || !isConversation(operation)) return undefined;
    const { countedPrompts } = this.said;
    const count = async (index: number, { body }: EngineRequest) => {
      try {
        countedPrompts[index] = await engine.countTokens?.({ ...sent, operation, body }, this.#open.cancellation);
      } catch {
        // What was delivered is estimated.
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

/** How an engine is asked that goes on, whatever else it speaks. */
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
