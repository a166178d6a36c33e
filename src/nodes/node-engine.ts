// A node as an engine: its announced models that operators have approved.
import type { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { ChatContinuation, Engine, EngineModel, EngineRequest, EngineResponse } from "../domain/models/engine.ts";
import type { ModelProcessState } from "../domain/models/model-process-state.ts";
import { type AnnouncedModel, everyModel, type NodeRecord } from "../domain/models/node.ts";
import type { Operation } from "../domain/models/operation.ts";

/** The part of `NodeDirectory` that a node's engine needs. */
export interface NodeWays {
  /** Returns the current record of a node; undefined if it was deleted. */
  record(nodeId: string): NodeRecord | undefined;
  /** Reports whether this process can send requests to the node. */
  isReachable(nodeId: string): boolean;
  /** Reports whether the node has been disconnected for so long that its models are no longer offered. */
  isGone(nodeId: string): boolean;
  send(nodeId: string, request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse>;
}

const hashed = { cacheSalt: false, priority: false, identifiers: "hashed" } as const;

/** `Retry-After` in seconds for a disconnected node, which usually reconnects soon. */
export const awayRetrySeconds = 2;

export class NodeEngine implements Engine {
  readonly nodeId: string;
  readonly name: string;
  /** Forms (multipart bodies) are not accepted: a form may have gigabytes, and the tunnel sends a body in messages. */
  readonly takesForms = false;
  /** A node knows no accounts, so users' identifiers are hashed. */
  readonly isolation = hashed;
  readonly maxConcurrency: number | undefined;
  /**
   * Returns the number of parallel requests that the node announced for a model. Absent if an operator set a limit for
   * the whole node.
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

  /** True if the node accepts requests; false while it is disconnected or stopping. */
  get accepts(): boolean {
    return this.#ways.isReachable(this.nodeId);
  }

  /** Returns the models that the node may serve. Rejects while it is disconnected. */
  async models(): Promise<EngineModel[]> {
    if (this.accepts || !this.#ways.record(this.nodeId)) return this.lastModels();
    throw new GatewayError("upstream_error", "The node is not connected.");
  }

  /** Returns the last known models; none if the node has been disconnected for too long. */
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
