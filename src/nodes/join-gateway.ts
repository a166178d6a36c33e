// Joins a gateway from a machine: creates its key pair, and sends the public key with a join token.
import { z } from "zod";
import type { NodeIdentity } from "../domain/models/node-identity.ts";
import { joinedShape } from "../wire/nodes.ts";
import { newNodeKey } from "./identity.ts";

export interface JoinOptions {
  /** Base address of the gateway, without `/v1` and without a slash at its end. */
  gatewayUrl: string;
  /** The join token, which is a secret. */
  token: string;
  name: string;
  /** The proxy for outgoing connections, now and later. */
  proxy?: string | undefined;
  signal: AbortSignal;
}

/** The error for a refusal by the gateway. `message` is the gateway's own. */
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
 * Joins a gateway. Rejects with JoinRefused, with the reason of `signal`, or like `fetch`. Once it resolves, the token
 * is used up.
 */
export async function joinGateway({ gatewayUrl, token, name, proxy, signal }: JoinOptions): Promise<NodeIdentity> {
  const { publicKey, privateKey } = newNodeKey();
  const response = await fetch(`${gatewayUrl}/v1/nodes`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ token, name, public_key: publicKey }),
    // Redirects are not followed, because the token must not go to another server.
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
