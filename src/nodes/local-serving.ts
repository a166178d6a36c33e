// On a node, announces this machine's models, and answers the gateway's requests.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import { bodyOf } from "../base/bytes/body-source.ts";
import { AccountMemory, bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { Cancellation } from "../base/cancellation.ts";
import type { Clock } from "../base/clock.ts";
import type { MaybePromise } from "../base/deferred.ts";
import { BlamelessError, GatewayError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ChatContinuation, Engine } from "../domain/models/engine.ts";
import type { Model } from "../domain/models/model.ts";
import { type AnnouncedModel, maxNodeModels } from "../domain/models/node.ts";
import type { Operation } from "../domain/models/operation.ts";
import { defaultPriority } from "../domain/models/policies/priority.ts";
import type { AccountSeal } from "../domain/seal.ts";
import { isOfEngine } from "../inference/answer/engine-refusal.ts";
import type { Catalog } from "../inference/models/catalog.ts";
import type { Dispatched, Sender } from "../inference/routing/attempt.ts";
import type { Capacity } from "../inference/routing/capacity.ts";
import { dispatch } from "../inference/routing/dispatch.ts";
import { type PromptPrefix, promptPrefixOf } from "../inference/routing/prompt-prefix.ts";
import type { Router } from "../inference/routing/route.ts";
import { decodeRequest, type RequestLimits } from "../requests/decode/decode-request.ts";
import { operations } from "../requests/dialects/dialects.ts";
import { answerBeginning, NoBeginning } from "./answer-beginning.ts";
import type { NodeAnnouncement, NodeAnswer, NodeRequest } from "./tunnel/contract.ts";

export interface LocalServingOptions {
  catalog: Pick<Catalog, "get" | "list" | "isNode">;
  router: Router;
  capacity: Capacity;
  clock: Clock;
  log: Log;
  version: string;
  /** Id of the demo model. It is offered only if there is no other model. */
  demoModel: string;
  /** Returns the limits for requests of the gateway. */
  requestLimits(): RequestLimits;
  /** Converts an error to an HTTP response, as the public API does. */
  renderError(error: GatewayError): { status: number; headers: Readonly<Record<string, string>>; body: string };
}

/**
 * The account of all requests from the gateway, because nodes do not learn whose requests they are. All requests share
 * one queue.
 */
const gatewayAccount = "gateway";

/** A node cannot encrypt or pseudonymize for accounts; the gateway does that. */
const nothingSealed: AccountSeal = { seal: () => "", open: () => undefined, pseudonym: (_use, value) => value };

export class LocalServing {
  readonly #options: LocalServingOptions;
  /** Memory account for all requests from the gateway, which does not say whose they are. */
  readonly #memoryAccount = bufferedBytes.memoryAccount(new AccountMemory());
  #running = 0;
  /** Models for which the log already says that they are not offered. */
  readonly #withheld = new Set<string>();

  constructor(options: LocalServingOptions) {
    this.#options = options;
  }

  /** Number of running requests from the gateway. */
  get running(): number {
    return this.#running;
  }

  announcement(): NodeAnnouncement {
    const { capacity, version } = this.#options;
    return {
      version,
      models: this.#offered().map((model) => announced(model)),
      load: { active: this.#running, waiting: capacity.waiting },
    };
  }

  /**
   * Answers a request of the gateway. Rejects only if the request was cancelled; any other failure is an error
   * response.
   */
  async handle(request: NodeRequest, cancellation: Cancellation): Promise<NodeAnswer> {
    const { clock, log } = this.#options;
    const { requestId, operation, model, stream } = request;
    const startedMs = clock.monotonicMs();
    this.#running++;
    let isOver = false;
    const over = (outcome: string, fault?: GatewayError) => {
      if (isOver) return;
      isOver = true;
      this.#running--;
      const ms = Math.round((clock.monotonicMs() - startedMs) * 10) / 10;
      const faultFields = fault && {
        code: fault.code,
        ...(fault.detail === undefined ? {} : { detail: fault.detail }),
      };
      log.info("node_request", { id: requestId, operation, model, stream, outcome, ms, ...faultFields });
    };
    // A separate cancellation, because the gateway's works only until the response headers.
    const own = new Cancellation();
    const stop = () => own.cancel(cancellation.reason);
    cancellation.onCancel(stop);
    try {
      const { dispatched, body } = await this.#begunAnswer(request, own);
      const { status, headers } = dispatched.response;
      return { status, headers, body: new ServedBody(body, dispatched, own, over) };
    } catch (error) {
      if (own.cancelled) {
        over("cancelled");
        throw error;
      }
      const fault = faultOf(error);
      over("failed", fault);
      return this.#refusal(fault);
    } finally {
      cancellation.off(stop);
    }
  }

  /**
   * Returns the first valid answer. If an engine's response is no answer, that engine is suspended and the next one is
   * asked.
   */
  async #begunAnswer(request: NodeRequest, own: Cancellation): Promise<{ dispatched: Dispatched; body: BodySource }> {
    let dispatched = await this.#dispatch(request, own);
    for (;;) {
      const body = await answerBeginning(dispatched, own).catch((reason) => {
        dispatched.done(false);
        throw reason;
      });
      if (!(body instanceof NoBeginning)) return { dispatched, body };
      if (!isOfEngine(body.error)) {
        dispatched.done(false);
        throw body.error;
      }
      dispatched = await dispatched.another(body.error, body.isCut);
    }
  }

  #dispatch(request: NodeRequest, cancellation: Cancellation): MaybePromise<Dispatched> {
    const { operation, requestId, body, priority = defaultPriority } = request;
    const bytes = typeof body === "string" ? ByteSpan.of(body) : body.solid;
    const decoded = decodeRequest(operation, bytes, this.#options.requestLimits());
    const model = this.#find(decoded.model);
    if (!model) {
      throw new GatewayError("model_not_found", `The node does not serve \`${decoded.model}\` at the moment.`);
    }
    let prefix: PromptPrefix | undefined | null = null;
    const sender: Sender = {
      requestId,
      // The gateway sends the priority. All of its requests share one account here.
      ...{ priority, accountId: gatewayAccount, partyId: gatewayAccount },
      memoryAccount: this.#memoryAccount,
      recording: false,
      seal: nothingSealed,
      cancellation,
      workload: {
        promptTokens: decoded.promptTokens,
        maxCompletionTokens: decoded.maxCompletionTokens,
        width: decoded.width,
        prefix: () => {
          if (prefix === null) prefix = promptPrefixOf(decoded, gatewayAccount);
          return prefix;
        },
      },
      modelNow: (id) => this.#find(id),
      // The gateway has already decided that the request may run on this machine.
      mayAsk: () => true,
      // Fallback models are the gateway's task.
      fallbackModels: () => [],
      waits() {},
      waited() {},
      sending() {},
      attempted() {},
      tried: () => null,
    };
    return dispatch(decoded, model, this.#options, sender);
  }

  #refusal(fault: GatewayError): NodeAnswer {
    const { status, headers, body } = this.#options.renderError(fault);
    return {
      status,
      headers: { get: (name) => headers[name.toLowerCase()] ?? null },
      body: bodyOf(Buffer.from(body)),
    };
  }

  #offered(): Model[] {
    const { catalog, demoModel } = this.#options;
    const listed = catalog.list();
    const models = listed.flatMap((model) => this.#own(model) ?? []);
    if (models.length < listed.length) this.#logWithheld(listed);
    const others = models.filter(({ id }) => id !== demoModel);
    return (others.length > 0 ? others : models).slice(0, maxNodeModels);
  }

  #logWithheld(listed: readonly Model[]): void {
    const { catalog, log } = this.#options;
    for (const { id, deployments } of listed) {
      const own = deployments.filter(({ engine }) => !catalog.isNode(engine));
      if (own.length === 0 || own.some(({ engine }) => speaksChat(engine)) || this.#withheld.has(id)) continue;
      this.#withheld.add(id);
      const why = "its upstream speaks Messages or Responses alone; a node offers models that speak chat completions";
      log.warn("node_model_not_offered", { model: id, upstream: own[0]?.engine.name, why });
    }
  }

  #find(id: string): Model | undefined {
    const model = this.#options.catalog.get(id);
    return model && this.#own(model);
  }

  /**
   * Returns the model with only this machine's own deployments; undefined if it has none. Models of other nodes are
   * excluded, so that no request can go in circles.
   */
  #own(model: Model): Model | undefined {
    const deployments = model.deployments.filter(
      ({ engine }) => !this.#options.catalog.isNode(engine) && speaksChat(engine),
    );
    return deployments.length === 0 ? undefined : { ...model, deployments, fallbacks: undefined, aliases: undefined };
  }
}

/** Reports whether an engine supports chat completions, to which the gateway converts all other formats. */
function speaksChat({ formats }: Engine): boolean {
  return formats === undefined || formats.chat !== undefined;
}

function announced(model: Model): AnnouncedModel {
  const { id, created, ownedBy, capabilities, context, shutdownAt } = model;
  const concurrency = concurrencyOf(model);
  const continues = continuationOf(model);
  const process = model.deployments.map(({ engine, model: own }) => engine.processState?.(own)).find(Boolean);
  return {
    ...{ id, created, ownedBy },
    ...(capabilities ? { capabilities } : {}),
    ...(context === undefined ? {} : { context }),
    ...(shutdownAt === undefined ? {} : { shutdownAt }),
    ...(Object.keys(concurrency).length > 0 ? { concurrency } : {}),
    ...(process === undefined ? {} : { process }),
    ...(continues === undefined ? {} : { continues }),
  };
}

/** Returns how the model's engines continue a broken answer; undefined if they do so in different ways. */
function continuationOf({ deployments }: Model): ChatContinuation | undefined {
  const [way, ...others] = new Set(deployments.map(({ engine, model }) => engine.continues?.(model)));
  return others.length === 0 ? way : undefined;
}

/** Returns the number of parallel requests by operation, summed over all engines; left out if one is unknown. */
function concurrencyOf({ deployments }: Model): Partial<Record<Operation, number>> {
  const concurrency: Partial<Record<Operation, number>> = {};
  for (const operation of operations) {
    const slots = deployments.map(
      ({ engine, model }) => engine.concurrency?.(model, operation) ?? engine.maxConcurrency ?? Number.NaN,
    );
    const sum = slots.reduce((total, slots) => total + slots, 0);
    if (Number.isSafeInteger(sum) && sum > 0) concurrency[operation] = sum;
  }
  return concurrency;
}

function faultOf(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new GatewayError("internal_error", "The node failed.", { detail });
}

/** An answer that is being sent to the gateway. When it ends, its slot at the engine is released. */
class ServedBody implements BodySource {
  readonly #body: BodySource;
  readonly #dispatched: Dispatched;
  readonly #cancellation: Cancellation;
  readonly #over: (outcome: string) => void;

  constructor(body: BodySource, dispatched: Dispatched, cancellation: Cancellation, over: (outcome: string) => void) {
    this.#body = body;
    this.#dispatched = dispatched;
    this.#cancellation = cancellation;
    this.#over = over;
  }

  flow(sink: BodySink): void {
    const dispatched = this.#dispatched;
    this.#body.flow({
      data: (bytes) => sink.data(bytes),
      end: () => {
        dispatched.done(false);
        this.#over("completed");
        sink.end();
      },
      fail: (error) => {
        dispatched.done(!(error instanceof BlamelessError), undefined, error);
        this.#over("failed");
        sink.fail(error);
      },
    });
  }

  pause(): void {
    this.#body.pause();
  }

  resume(): void {
    this.#body.resume();
  }

  cancel(): void {
    this.#cancellation.cancel();
    this.#body.cancel();
    this.#dispatched.done(false);
    this.#over("cancelled");
  }
}
