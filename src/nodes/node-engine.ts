// A node as an engine: what operators approved of what it announces, wherever its connection is.
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { ChatContinuation, Engine, EngineModel, EngineRequest, EngineResponse } from "../domain/models/engine.ts";
import type { ModelProcessState } from "../domain/models/model-process-state.ts";
import { type AnnouncedModel, everyModel, type NodeRecord } from "../domain/models/node.ts";
import type { Operation } from "../domain/models/operation.ts";

/** The port by which a node's engine asks about nodes. */
export interface NodeWays {
  /** The record as it is known now; undefined where it was deleted. */
  record(nodeId: string): NodeRecord | undefined;
  /** Whether requests can be sent to it from here. */
  isReachable(nodeId: string): boolean;
  /** Whether it has been away for so long that nobody should count on it. */
  isGone(nodeId: string): boolean;
  send(nodeId: string, request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse>;
}

const hashed = { cacheSalt: false, priority: false, identifiers: "hashed" } as const;

/** A node that lost its connection is mostly back sooner. */
export const awayRetrySeconds = 2;

export class NodeEngine implements Engine {
  readonly nodeId: string;
  readonly name: string;
  /** A tunnel has messages, and no room for gigabytes beside them. */
  readonly takesForms = false;
  /** The machine behind it knows nobody's account. */
  readonly isolation = hashed;
  readonly maxConcurrency: number | undefined;
  /** Left out where an operator set a limit, which is one for all of its models. */
  readonly concurrency?: (model: string, operation: Operation) => number | undefined;
  readonly #ways: NodeWays;

  constructor({ id, name, maxConcurrency }: NodeRecord, ways: NodeWays) {
    this.nodeId = id;
    this.name = name;
    this.maxConcurrency = maxConcurrency ?? undefined;
    this.#ways = ways;
    if (maxConcurrency === null) this.concurrency = (model, operation) => this.#announced(model, operation);
  }

  /** False while it takes nothing new: it is not connected, or about to leave. */
  get accepts(): boolean {
    return this.#ways.isReachable(this.nodeId);
  }

  /** The models that it may serve. Rejects while it is away. */
  async models(): Promise<EngineModel[]> {
    if (this.accepts || !this.#ways.record(this.nodeId)) return this.lastModels();
    throw new GatewayError("upstream_error", "The node is not connected.");
  }

  /** The same as it was last known: its models stay on offer while it is away for a short time only. */
  lastModels(): EngineModel[] {
    const record = this.#ways.record(this.nodeId);
    return record && !this.#ways.isGone(this.nodeId) ? servedModels(record) : [];
  }

  send(request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse> {
    const record = this.#ways.record(this.nodeId);
    // It may have waited for its turn while an operator thought better of it.
    if (record && !isApproved(record, request.model)) {
      return Promise.reject(
        new GatewayError("model_not_found", `The node does not serve \`${request.model}\` any more.`),
      );
    }
    return this.#ways.send(this.nodeId, request, cancellation);
  }

  processState(model: string): ModelProcessState | undefined {
    return this.#ways.record(this.nodeId)?.announced.find(({ id }) => id === model)?.process;
  }

  continues(model: string): ChatContinuation | undefined {
    return this.#ways.record(this.nodeId)?.announced.find(({ id }) => id === model)?.continues;
  }

  redact(text: string): string {
    return text;
  }

  #announced(model: string, operation: Operation): number | undefined {
    const announced = this.#ways.record(this.nodeId)?.announced.find(({ id }) => id === model);
    return announced?.concurrency?.[operation];
  }
}

export function isApproved({ approvedModels }: Pick<NodeRecord, "approvedModels">, model: string): boolean {
  return approvedModels.includes(everyModel) || approvedModels.includes(model);
}

function servedModels(record: NodeRecord): EngineModel[] {
  const { environments } = record;
  return record.announced
    .filter(({ id }) => isApproved(record, id))
    .map(({ concurrency: _, process: __, continues: ___, ...model }: AnnouncedModel) => ({ ...model, environments }));
}

export function nodeIsAway(name: string): GatewayError {
  return new GatewayError(
    "service_unavailable",
    `The machine that serves this model is not connected at the moment. Retry in ${awayRetrySeconds} s.`,
    { detail: `${name}: node is not connected`, retryAfterSeconds: awayRetrySeconds },
  );
}
