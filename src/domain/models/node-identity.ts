// The identity of a machine that joined a gateway.

export interface NodeIdentity {
  /** The URL of the gateway, without a trailing slash. */
  gateway_url: string;
  /** The gateway's own name for itself. The node's signature is valid only for this name. */
  gateway: string;
  node_id: string;
  name: string;
  /** Ed25519, PKCS #8 as base64url: a secret. */
  private_key: string;
  /** The proxy for joining and connecting; may contain a password. Missing: none. */
  proxy?: string | undefined;
  /** Unix seconds. */
  joined_at: number;
}

export const linkStatuses = ["connecting", "connected", "waiting", "draining", "refused", "closed"] as const;
export type LinkStatus = (typeof linkStatuses)[number];

/** The state of the connection, as the server reports it to other processes of the machine. */
export interface NodeLinkReport {
  node_id: string;
  status: LinkStatus;
  /** The state as a text for people. */
  message: string;
  /** Unix seconds. */
  since: number;
  /** The offered models; `approved` is null if the gateway has not reported it. */
  models: { id: string; approved: boolean | null }[];
}
