// What a machine that joined a gateway knows of itself.

export interface NodeIdentity {
  /** Where it connects to; without a slash at its end. */
  gateway_url: string;
  /** What the gateway calls itself: the proof of who the node is holds for this one alone. */
  gateway: string;
  node_id: string;
  name: string;
  /** Ed25519, PKCS #8 as base64url: a secret. */
  private_key: string;
  /** By way of which it joined and connects; may hold a password. Left out: directly. */
  proxy?: string | undefined;
  /** Unix seconds. */
  joined_at: number;
}

export const linkStatuses = ["connecting", "connected", "waiting", "draining", "refused", "closed"] as const;
export type LinkStatus = (typeof linkStatuses)[number];

/** How its connection does, as the server that keeps it says for other processes of the machine. */
export interface NodeLinkReport {
  node_id: string;
  status: LinkStatus;
  /** For people. */
  message: string;
  /** Unix seconds. */
  since: number;
  /** What it offers; `approved`: null where the gateway has not told. */
  models: { id: string; approved: boolean | null }[];
}
