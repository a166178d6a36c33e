// Knowledge of a machine that joined a gateway about itself.

export interface NodeIdentity {
  /** The address to which it connects, without a slash at its end. */
  gateway_url: string;
  /** The name that the gateway gives itself: the proof of who the node is holds for this one alone. */
  gateway: string;
  node_id: string;
  name: string;
  /** Ed25519, PKCS #8 as base64url: a secret. */
  private_key: string;
  /** The proxy through which it joined and connects; may hold a password. Left out: directly. */
  proxy?: string | undefined;
  /** Unix seconds. */
  joined_at: number;
}

export const linkStatuses = ["connecting", "connected", "waiting", "draining", "refused", "closed"] as const;
export type LinkStatus = (typeof linkStatuses)[number];

/** The state of its connection, as the server that keeps it says for other processes of the machine. */
export interface NodeLinkReport {
  node_id: string;
  status: LinkStatus;
  /** The state in words for people. */
  message: string;
  /** Unix seconds. */
  since: number;
  /** The models that it offers; `approved`: null where the gateway has not told. */
  models: { id: string; approved: boolean | null }[];
}
