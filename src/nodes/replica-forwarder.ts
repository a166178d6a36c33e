// Sends a request for a node to the gateway process that the node is connected to.

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
  /** Keys for signing requests (32 bytes each), the same in all processes. */
  key: Keys;
  clock: Pick<Clock, "nowSeconds">;
  /** Timeouts of the tunnel. The other process enforces them. */
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
}

/** Additional milliseconds to wait, so that the other process reports its timeout first. */
const marginMs = 2_000;
/** Milliseconds for connecting to another gateway process in the same network. */
const connectTimeoutMs = 3_000;
const maxErrorBytes = 64 * 1024;

export class ReplicaForwarder {
  readonly #options: ReplicaForwarderOptions;
  readonly #clients = new Map<string, Http1Client>();

  constructor(options: ReplicaForwarderOptions) {
    this.#options = options;
  }

  /** Drops the HTTP clients for all other addresses. Their running requests continue. */
  keep(advertiseUrls: readonly string[]): void {
    const kept = new Set(advertiseUrls);
    // A client without requests closes its connections by itself.
    for (const url of this.#clients.keys()) if (!kept.has(url)) this.#clients.delete(url);
  }

  /**
   * Sends a request through another gateway process. Resolves to `not_there` if that process is gone or the node is not
   * connected to it; the node then got nothing.
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
 * Returns the error of an answer that broke off. If the other process reported none, the process or the connection
 * failed, and the node may still work.
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
