// Lets operators manage nodes and join tokens: approve models, drain and remove nodes.

import { GatewayError, invalidRequest } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import { defaultEnvironments, inUsualOrder } from "../domain/api-key.ts";
import type { Keys } from "../domain/key-ring.ts";
import {
  joinTokenSeconds,
  type NodeChange,
  type NodeJoinToken,
  type NodeRecord,
  type NodeStore,
} from "../domain/models/node.ts";
import { actorOf, type Principal } from "../domain/principal.ts";
import { engineName } from "../inference/models/upstream-values.ts";
import type { Capacity } from "../inference/routing/capacity.ts";
import type { Router } from "../inference/routing/route.ts";
import { requireOperator } from "../policy/manage/operator.ts";
import { aboutInstallation, auditEvent, changedMembers, type Origin } from "../policy/records/audit.ts";
import type {
  CreatedJoinTokenWire,
  CreateJoinTokenRequest,
  JoinTokenWire,
  NodeWire,
  UpdateNodeRequest,
} from "../wire/nodes.ts";
import { joinTokenDigest, newJoinToken } from "./join-token.ts";
import type { NodeDirectory } from "./node-directory.ts";
import { modelList } from "./node-values.ts";
import { joinTokenToWire, nodeToWire } from "./node-view.ts";

export interface NodesOptions {
  store: NodeStore;
  directory: Pick<NodeDirectory, "records" | "engines" | "locate" | "isLeaving" | "refresh">;
  capacity: Pick<Capacity, "figures" | "regroup">;
  router: Pick<Router, "drained">;
  /** Reads again from the database which upstreams and nodes are draining. */
  drainedChanged(): Promise<void>;
  /** Reports whether an upstream has this name. */
  isUpstream(name: string): boolean;
  /** Returns this gateway's URL for nodes, without `/v1`. */
  gatewayUrl(): string;
  /** Keys for digests of join tokens (32 bytes each), the current one first. */
  tokenKey: Keys;
}

/** Maximum valid join tokens. */
const maxOpenTokens = 100;

export class Nodes {
  readonly #options: NodesOptions;

  constructor(options: NodesOptions) {
    this.#options = options;
  }

  /** Returns all nodes, sorted by name. */
  list(): NodeWire[] {
    return this.#options.directory.engines().map(({ record, engine }) => nodeToWire(record, engine, this.#options));
  }

  /** Returns a node. Throws `not_found`. */
  get(id: string): NodeWire {
    const known = this.#options.directory.engines().find(({ record }) => record.id === id);
    if (!known) throw unknownNode(id);
    return nodeToWire(known.record, known.engine, this.#options);
  }

  /** Changes the settings of a node. They apply here at once, and at other replicas within 2 s. */
  async change(principal: Principal, id: string, request: UpdateNodeRequest, origin: Origin): Promise<NodeWire> {
    requireOperator(principal);
    const record = this.#record(id);
    const wasDraining = this.#options.router.drained.has(record.name);
    const change = changeOf(request);
    if (change.name !== undefined && change.name !== record.name) this.#requireFree(change.name);
    const before = settingsToWire(record, wasDraining);
    const after = settingsToWire({ ...record, ...change }, change.draining ?? wasDraining);
    const detail = changedMembers(before, after);
    if (Object.keys(detail).length === 0) return this.get(id);
    const event = auditEvent(
      "node.updated",
      principal,
      origin,
      aboutInstallation(id, { name: record.name, ...detail }),
    );
    if (!(await this.#options.store.changeNode(id, change, event))) {
      if (change.name === undefined) throw unknownNode(id);
      throw nameTaken(change.name);
    }
    await this.#changed();
    return this.get(id);
  }

  /**
   * Removes a node: closes its connection and ends its running requests. The machine needs a new token to join again.
   */
  async remove(principal: Principal, id: string, origin: Origin): Promise<void> {
    requireOperator(principal);
    const { name } = this.#record(id);
    const event = auditEvent("node.deleted", principal, origin, aboutInstallation(id, { name }));
    if (!(await this.#options.store.deleteNode(id, event))) throw unknownNode(id);
    await this.#changed();
  }

  async createToken(
    principal: Principal,
    request: CreateJoinTokenRequest,
    origin: Origin,
  ): Promise<CreatedJoinTokenWire> {
    requireOperator(principal);
    const { nowSeconds } = origin;
    const { store, tokenKey, gatewayUrl } = this.#options;
    const open = (await store.listTokens()).filter(
      ({ usedAt, expiresAt }) => usedAt === null && expiresAt > nowSeconds,
    );
    if (open.length >= maxOpenTokens) {
      throw invalidRequest(
        `There are ${maxOpenTokens} join tokens already that nobody has used; delete those that are not needed.`,
      );
    }
    const token = newJoinToken();
    const record: NodeJoinToken = {
      id: `njt_${Bun.randomUUIDv7()}`,
      digest: joinTokenDigest(token, tokenKey) ?? "",
      last4: token.slice(-4),
      approvedModels: modelList(request.approved_models ?? []),
      environments: inUsualOrder(request.environments ?? defaultEnvironments),
      createdBy: creatorOf(principal),
      createdAt: nowSeconds,
      expiresAt: nowSeconds + (request.expires_in ?? joinTokenSeconds.usual),
      usedAt: null,
      nodeId: null,
    };
    const { approved_models, environments, expires_at } = joinTokenToWire(record, nowSeconds);
    const detail = { approved_models, environments, expires_at };
    await store.insertToken(
      record,
      auditEvent("node_token.created", principal, origin, aboutInstallation(record.id, detail)),
    );
    return { ...joinTokenToWire(record, nowSeconds), token, gateway_url: gatewayUrl() };
  }

  /** Returns the join tokens, newest first. */
  async listTokens(nowSeconds: number): Promise<JoinTokenWire[]> {
    return (await this.#options.store.listTokens()).map((token) => joinTokenToWire(token, nowSeconds));
  }

  /** Deletes a join token. Nodes that joined with it stay. */
  async removeToken(principal: Principal, id: string, origin: Origin): Promise<void> {
    requireOperator(principal);
    const event = auditEvent("node_token.deleted", principal, origin, aboutInstallation(id, {}));
    if (await this.#options.store.deleteToken(id, event)) return;
    throw new GatewayError("not_found", "There is no such join token. GET /v1/admin/node-tokens lists them.");
  }

  async #changed(): Promise<void> {
    const { directory, capacity, drainedChanged } = this.#options;
    await drainedChanged();
    await directory.refresh();
    // Makes waiting requests choose their deployment again, because the node's settings have changed.
    capacity.regroup();
  }

  #record(id: string): NodeRecord {
    const record = this.#options.directory.records().find((one) => one.id === id);
    if (!record) throw unknownNode(id);
    return record;
  }

  #requireFree(name: string): void {
    const isNode = this.#options.directory.records().some((record) => record.name === name);
    if (isNode || this.#options.isUpstream(name)) throw nameTaken(name);
  }
}

function changeOf(request: UpdateNodeRequest): NodeChange {
  const { name, approved_models, environments, max_concurrency, local, draining } = request;
  return {
    ...(name === undefined ? {} : { name: engineName(name) }),
    ...(approved_models === undefined ? {} : { approvedModels: modelList(approved_models) }),
    ...(environments === undefined ? {} : { environments: inUsualOrder(environments) }),
    ...(max_concurrency === undefined ? {} : { maxConcurrency: max_concurrency }),
    ...(local === undefined ? {} : { local }),
    ...(draining === undefined ? {} : { draining }),
  };
}

/** Returns the settings in the form of the API, for the audit log. */
function settingsToWire({ name, approvedModels, environments, maxConcurrency, local }: NodeRecord, draining: boolean) {
  return {
    name,
    approved_models: [...approvedModels],
    environments: [...environments],
    max_concurrency: maxConcurrency,
    local,
    draining,
  };
}

function creatorOf(principal: Principal): string | null {
  const actor = actorOf(principal);
  return "id" in actor ? actor.id : null;
}

function unknownNode(id: string): GatewayError {
  return new GatewayError("not_found", `There is no node ${shown(id)}. GET /v1/admin/nodes lists the nodes.`);
}

export function nameTaken(name: string): GatewayError {
  return invalidRequest(`name: there is a node or an upstream ${name} already; choose another name.`);
}
