// The two kinds of webhooks, the account's and the operators', with their event types in words.
import type { Webhook } from "../../api/types.ts";

export type EventType = Webhook["events"][number];

export interface WebhookKind {
  /** The API path of the webhooks. */
  path: string;
  /** The description of the address field. */
  urlHint: string;
  /** The event types of this kind. */
  types: readonly EventType[];
}

export const ofAccount: WebhookKind = {
  path: "/v1/webhooks",
  urlHint: "An https address on the public internet",
  types: [
    "quota.threshold",
    "key.expiring",
    "key.unused",
    "key.rotation_due",
    "model.shutdown",
    "errors.rate",
    "limit.requested",
    "limit.decided",
  ],
};

export const ofOperators: WebhookKind = {
  path: "/v1/admin/webhooks",
  urlHint: "An https address on the public internet, or an address that webhook_networks allows",
  types: [
    ...(["upstream.failing", "upstream.recovered", "upstream.down", "upstream.up"] as const),
    ...(["node.away", "node.back", "tool.changed", "errors.rate", "limit.requested"] as const),
  ],
};

export const formatNames: Readonly<Record<Webhook["format"], string>> = {
  standard: "Standard Webhooks",
  slack: "Slack",
  teams: "Microsoft Teams (workflow)",
  pagerduty: "PagerDuty (Events API v2)",
  alertmanager: "Prometheus Alertmanager",
};

export const eventMeanings: Readonly<Record<EventType, string>> = {
  "quota.threshold": "50, 80, 90 or 100 % of a quota are used",
  "key.expiring": "A key expires in 7 days, or in 1 day",
  "key.unused": "A key was not used for 90 days",
  "key.rotation_due": "The scheduled rotation of a key is due",
  "model.shutdown": "A model that keys used in the last 30 days is shut down in 30, 7 or 1 days",
  "errors.rate": "At least 10 % of the requests fail",
  "upstream.down": "An upstream does not answer",
  "upstream.up": "An upstream answers again",
  "upstream.failing": "An upstream fails requests",
  "upstream.recovered": "Requests to an upstream succeed again",
  "node.away": "A node is not connected",
  "node.back": "A node is connected again",
  "tool.changed": "Tools of an MCP server wait for approval",
  "limit.requested": "A person asks for more of a limit",
  "limit.decided": "A request for more of a limit was granted or refused",
  "webhook.test": "A test",
};

export function webhookPath({ path }: WebhookKind, id: string): string {
  return `${path}/${encodeURIComponent(id)}`;
}
