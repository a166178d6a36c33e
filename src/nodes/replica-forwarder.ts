// Sends a request for a node to the process with the node's connection, at its address in the database.

import { readAll } from "../base/bytes/body-source.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { Clock } from "../base/clock.ts";
import { BlamelessError, GatewayError } from "../base/errors.ts";
import type { Keys } from "../domain/key-ring.ts";
import type { EngineResponse } from "../domain/models/engine.ts";
import type { NodeConnection } from "../domain/models/node.ts";
import { Http1Client, originOf } from "../http1/client/client.ts";
import { ClientError, type ClientResponse } from "../http1/client/client-contract.ts";
import { bodyDigest, signForward } from "./forward-signature.ts";
import { aboutText, forwardHeaders, forwardPath, readError, readFault } from "./forward-wire.ts";
import type { TunnelRequest } from "./tunnel/contract.ts";

export interface ReplicaForwarderOptions {
  /** The keys of 32 bytes that sign requests, the same at all replicas. */
  key: Keys;
  clock: Pick<Clock, "nowSeconds">;
  /** The same timeouts as for the tunnel, which the other replica enforces. */
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
}

/** The time that is waited beyond the other replica's timeouts, because its own answer says more. */
const marginMs = 2_000;
/** The time for a connection in the same network. Another replica may be asked instead. */
const connectTimeoutMs = 3_000;
const maxErrorBytes = 64 * 1024;

export class ReplicaForwarder {
  readonly #options: ReplicaForwarderOptions;
  readonly #clients = new Map<string, Http1Client>();

  constructor(options: ReplicaForwarderOptions) {
    this.#options = options;
  }

  /**
   * Keeps connections to these addresses. Connections to other addresses are closed once their running requests have
   * ended.
   */
  keep(advertiseUrls: readonly string[]): void {
    const kept = new Set(advertiseUrls);
    // A client without requests closes its connections itself.
    for (const url of this.#clients.keys()) if (!kept.has(url)) this.#clients.delete(url);
  }

  /**
   * Sends a request to a node through the replica that holds the node's connection. `not_there` means that nothing was
   * sent to the node, because that process is gone or does not hold the connection. Otherwise like `Engine.send`.
   */
  async send(
    { nodeId, replicaId, advertiseUrl }: NodeConnection,
    request: TunnelRequest,
    cancellation: Cancellation,
  ): Promise<EngineResponse | "not_there"> {
    if (advertiseUrl === null) throw unreachable(`replica ${replicaId} has no HEADRACE_ADVERTISE_URL`);
    const { key, clock, firstByteTimeoutMs, idleTimeoutMs } = this.#options;
    const path = forwardPath.replace(":id", encodeURIComponent(nodeId));
    const { requestId, memoryAccount, body } = request;
    const [about, digest] = [aboutText(request), bodyDigest(body)];
    const signature = signForward({ method: "POST", path, replicaId, about, bodyDigest: digest }, key, clock);
    const headers = {
      "content-type": "application/json",
      [forwardHeaders.about]: about,
      [forwardHeaders.digest]: digest,
      [forwardHeaders.replica]: replicaId,
      [forwardHeaders.signature]: signature,
    };
    try {
      const response = await this.#client(advertiseUrl).send(
        { method: "POST", path, headers, requestId, body, memoryAccount, faultTrailer: forwardHeaders.fault },
        { firstByteTimeoutMs: firstByteTimeoutMs + marginMs, idleTimeoutMs: idleTimeoutMs + marginMs },
        cancellation,
      );
      return await read(response, replicaId, cancellation);
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      if (error.fault === "connect") return "not_there";
      throw unreachable(`replica ${replicaId}: ${error.message}`, error);
    }
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }

  #client(advertiseUrl: string): Http1Client {
    let client = this.#clients.get(advertiseUrl);
    if (!client) {
      client = new Http1Client(originOf(new URL(advertiseUrl)), { connectTimeoutMs, errors: answerFault });
      this.#clients.set(advertiseUrl, client);
    }
    return client;
  }
}

async function read(
  response: ClientResponse,
  replicaId: string,
  cancellation: Cancellation,
): Promise<EngineResponse | "not_there"> {
  const { status, headers, body } = response;
  const outcome = headers.get(forwardHeaders.outcome);
  if (outcome === "answer") return { status, headers, body };
  if (outcome === "not_there") {
    body.cancel();
    return "not_there";
  }
  if (outcome !== "error") {
    body.cancel();
    throw unreachable(`replica ${replicaId} answered ${status}: is HEADRACE_SECRET the same, and its clock right?`);
  }
  const { text } = await readAll(body, maxErrorBytes, cancellation, () => {});
  throw readError(text) ?? unreachable(`replica ${replicaId} answered with an error that cannot be read`);
}

/**
 * Returns the fault of an answer that has begun. If the other replica reports no fault, the replica or its connection
 * broke, and the node may still work.
 */
function answerFault(fault: unknown): unknown {
  if (!(fault instanceof ClientError && fault.answerBegan)) return fault;
  const reported = fault.fault === "told" ? readFault(fault.message) : undefined;
  return (
    reported ??
    new BlamelessError(
      "upstream_error",
      "The model server broke off in the middle of the answer. Retry your request.",
      {
        detail: `another replica: ${fault.message}`,
        cause: fault,
      },
    )
  );
}

function unreachable(detail: string, cause?: unknown): GatewayError {
  return new GatewayError("upstream_error", "The model server cannot be reached.", { detail, cause });
}
