// The identity of this machine as a node of a gateway.

export interface NodeIdentity {
  /** The URL of the gateway, without a trailing slash. */
  gateway_url: string;
  /** The gateway's name for itself. The node's signature is valid only for a gateway of this name. */
  gateway: string;
  node_id: string;
  name: string;
  /** The node's private key (Ed25519, PKCS #8, base64url), a secret. */
  private_key: string;
  /** The proxy through which the node joins and connects. May contain a password. Missing if there is none. */
  proxy?: string | undefined;
  /** Unix seconds. */
  joined_at: number;
}

export const linkStatuses = ["connecting", "connected", "waiting", "draining", "refused", "closed"] as const;
export type LinkStatus = (typeof linkStatuses)[number];

/** The state of the node's connection, which the server reports to commands on the same machine. */
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
