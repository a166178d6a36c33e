// Lets a machine join as a node: an operator's token can be used once, with the machine's own key.

import { forbidden, GatewayError, invalidRequest } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { defaultEnvironments } from "../domain/api-key.ts";
import type { Keys } from "../domain/key-ring.ts";
import type { LimitStore } from "../domain/limits/limits.ts";
import { maxNodes, type NodeRecord, type NodeStore } from "../domain/models/node.ts";
import { engineName } from "../inference/models/upstream-values.ts";
import { clientNetwork } from "../policy/client-network.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import type { JoinedWire, JoinRequest } from "../wire/nodes.ts";
import { joinTokenDigests } from "./join-token.ts";
import { nameTaken } from "./manage-nodes.ts";
import type { NodeDirectory } from "./node-directory.ts";
import { publicKeyText } from "./node-values.ts";

export interface EnrolmentOptions {
  store: Pick<NodeStore, "enrol" | "findNode">;
  directory: Pick<NodeDirectory, "refresh">;
  limits: Pick<LimitStore, "admit">;
  /** Reports whether an upstream has this name. */
  isUpstream(name: string): boolean;
  /** Returns this gateway's URL for nodes, without `/v1`. Nodes sign it when they connect. */
  gatewayUrl(): string;
  /** Keys for digests of join tokens (32 bytes each), the current one first. */
  tokenKey: Keys;
  log: Log;
}

/** Maximum attempts per minute from one address. Many machines may share an address. */
const perMinute = 60;
const windowSeconds = 60;
const nothing = { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 };

export class Enrolment {
  readonly #options: EnrolmentOptions;

  constructor(options: EnrolmentOptions) {
    this.#options = options;
  }

  /**
   * Makes a machine a node. Throws `permission_denied` (without details) if the token is refused, `invalid_request`, or
   * `rate_limit_exceeded`.
   */
  async join(request: JoinRequest, origin: Origin): Promise<JoinedWire> {
    await this.#throttle(origin.clientAddress ?? "");
    const name = engineName(request.name);
    const publicKey = publicKeyText(request.public_key);
    const digests = joinTokenDigests(request.token, this.#options.tokenKey);
    if (digests === undefined) throw this.#refuse("malformed", origin);
    const node: NodeRecord = {
      id: `node_${Bun.randomUUIDv7()}`,
      name,
      publicKey,
      approvedModels: [],
      environments: defaultEnvironments,
      maxConcurrency: null,
      local: false,
      announced: [],
      toolServers: [],
      version: null,
      createdAt: origin.nowSeconds,
      lastSeenAt: null,
    };
    const { store, directory, gatewayUrl, isUpstream } = this.#options;
    // Check the name only after the token, so that others cannot find out which names exist.
    const isFree = !isUpstream(name);
    const outcome = await store.enrol(
      node,
      { digests, at: origin.nowSeconds, isFree },
      ({ id, approvedModels, environments }) =>
        auditEvent("node.joined", { type: "anonymous" }, origin, {
          accountId: null,
          targetId: node.id,
          detail: { name, token: id, approved_models: [...approvedModels], environments: [...environments] },
        }),
    );
    if (outcome === "name_taken") throw nameTaken(name);
    if (outcome === "too_many") {
      throw invalidRequest(`There are ${maxNodes} nodes already, which is the most there can be.`);
    }
    if (outcome !== "enrolled") throw this.#refuse(outcome, origin);
    await directory.refresh();
    const joined = (await store.findNode(node.id)) ?? node;
    return {
      object: "node",
      id: node.id,
      name,
      approved_models: [...joined.approvedModels],
      gateway_url: gatewayUrl(),
      created_at: node.createdAt,
    };
  }

  async #throttle(clientAddress: string): Promise<void> {
    const rule = {
      id: `node-join:${clientNetwork(clientAddress)}`,
      owner: "key",
      limit: perMinute,
      windowSeconds,
    } as const;
    const admission = await this.#options.limits.admit({ requests: [rule], tokens: [], quotas: [] }, nothing);
    if ("lease" in admission) return admission.lease.settle(0, 0);
    const retryAfterSeconds = Math.max(1, Math.ceil(admission.refusal.retryAfterSeconds ?? 1));
    throw new GatewayError(
      "rate_limit_exceeded",
      `At most ${perMinute} machines of one address may join per minute. Retry in ${retryAfterSeconds} s.`,
      { retryAfterSeconds },
    );
  }

  /** Returns the error for a refused token. The reason appears only in the log. */
  #refuse(reason: string, { clientAddress }: Origin): GatewayError {
    this.#options.log.warn("node_join_refused", { reason, client: clientAddress });
    return forbidden(
      "token: lets nobody in. A join token works once and for a short time; ask an operator of the gateway for a new one (headrace nodes token).",
      { detail: `join token: ${reason}` },
    );
  }
}
