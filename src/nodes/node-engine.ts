// A node as an engine: the announced models that operators approved, wherever its connection is.
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { ChatContinuation, Engine, EngineModel, EngineRequest, EngineResponse } from "../domain/models/engine.ts";
import type { ModelProcessState } from "../domain/models/model-process-state.ts";
import { type AnnouncedModel, everyModel, type NodeRecord } from "../domain/models/node.ts";
import type { Operation } from "../domain/models/operation.ts";

/** The port by which a node's engine asks about nodes. */
export interface NodeWays {
  /** Returns the record of a node as it is known now, or undefined if the node was deleted. */
  record(nodeId: string): NodeRecord | undefined;
  /** Reports whether requests can reach the node from here. */
  isReachable(nodeId: string): boolean;
  /** Reports whether the node has been away for too long to be expected back. */
  isGone(nodeId: string): boolean;
  send(nodeId: string, request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse>;
}

const hashed = { cacheSalt: false, priority: false, identifiers: "hashed" } as const;

/** The suggested wait for a disconnected node, which is usually back sooner. */
export const awayRetrySeconds = 2;

export class NodeEngine implements Engine {
  readonly nodeId: string;
  readonly name: string;
  /** A tunnel carries messages, and has no room for gigabytes beside them. */
  readonly takesForms = false;
  /** The machine of a node knows no accounts, so identifiers are hashed. */
  readonly isolation = hashed;
  readonly maxConcurrency: number | undefined;
  /**
   * Returns the announced concurrency of a model. Left out if an operator set a limit, which applies to all models of
   * the node together.
   */
  readonly concurrency?: (model: string, operation: Operation) => number | undefined;
  readonly #ways: NodeWays;

  constructor({ id, name, maxConcurrency }: NodeRecord, ways: NodeWays) {
    this.nodeId = id;
    this.name = name;
    this.maxConcurrency = maxConcurrency ?? undefined;
    this.#ways = ways;
    if (maxConcurrency === null) this.concurrency = (model, operation) => this.#announced(model, operation);
  }

  /** False while the node accepts no new requests: it is not connected, or about to leave. */
  get accepts(): boolean {
    return this.#ways.isReachable(this.nodeId);
  }

  /** Returns the models that the node may serve. Rejects while the node is away. */
  async models(): Promise<EngineModel[]> {
    if (this.accepts || !this.#ways.record(this.nodeId)) return this.lastModels();
    throw new GatewayError("upstream_error", "The node is not connected.");
  }

  /** Returns the models as they were last known. They stay on offer while the node is away for a short time only. */
  lastModels(): EngineModel[] {
    const record = this.#ways.record(this.nodeId);
    return record && !this.#ways.isGone(this.nodeId) ? servedModels(record) : [];
  }

  send(request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse> {
    const record = this.#ways.record(this.nodeId);
    // An operator may have withdrawn the approval while the request waited.
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
