// Lets this machine join a gateway: creates a key pair, and sends the public key with a join token.
import { z } from "zod";
import type { NodeIdentity } from "../domain/models/node-identity.ts";
import { joinedShape } from "../wire/nodes.ts";
import { newNodeKey } from "./identity.ts";

export interface JoinOptions {
  /** URL of the gateway, without `/v1` and without a slash at the end. */
  gatewayUrl: string;
  /** The join token; it is secret. */
  token: string;
  name: string;
  /** URL of the proxy for this and all later connections. */
  proxy?: string | undefined;
  signal: AbortSignal;
}

/** The gateway refused the request. `message` is the gateway's. */
export class JoinRefused extends Error {
  override readonly name = "JoinRefused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const timeoutMs = 30_000;
const refusal = z.object({ error: z.object({ message: z.string() }) });

/**
 * Joins a gateway; the token can then not be used again. Rejects with JoinRefused, with the reason of `signal`, or with
 * an error of `fetch`.
 */
export async function joinGateway({ gatewayUrl, token, name, proxy, signal }: JoinOptions): Promise<NodeIdentity> {
  const { publicKey, privateKey } = newNodeKey();
  const response = await fetch(`${gatewayUrl}/v1/nodes`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ token, name, public_key: publicKey }),
    // Do not follow redirects, because the token must not reach another server.
    redirect: "manual",
    ...(proxy === undefined ? {} : { proxy }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  const answer: unknown = await response.json().catch(() => undefined);
  const refused = refusal.safeParse(answer);
  if (refused.success) throw new JoinRefused(response.status, refused.data.error.message);
  const joined = joinedShape.safeParse(answer);
  if (!response.ok || !joined.success) {
    throw new JoinRefused(
      response.status,
      `It answered ${response.status} with something that is no answer of a Headrace.`,
    );
  }
  const { id, gateway_url: gateway, created_at: createdAt } = joined.data;
  return {
    gateway_url: gatewayUrl,
    gateway,
    node_id: id,
    name: joined.data.name,
    private_key: privateKey,
    ...(proxy === undefined ? {} : { proxy }),
    joined_at: createdAt,
  };
}
