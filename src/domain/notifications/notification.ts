// Notifications of accounts and operators: the types of events, their data, and the port of their store.
import type { Environment } from "../api-key.ts";

/** Types of events that are sent to the account concerned. */
export const accountNotificationTypes = ["quota.threshold", "key.unused", "key.expiring", "errors.rate"] as const;
/** Types of events that are sent to the operators of the installation. */
export const operatorNotificationTypes = [
  "upstream.down",
  "upstream.up",
  "node.away",
  "node.back",
  "tool.changed",
  "errors.rate",
] as const;
/** The test event of a webhook, sent only to that webhook. */
export const testNotificationType = "webhook.test";

export const notificationTypes = [
  "quota.threshold",
  "key.unused",
  "key.expiring",
  "errors.rate",
  "upstream.down",
  "upstream.up",
  "node.away",
  "node.back",
  "tool.changed",
  testNotificationType,
] as const satisfies readonly (
  | (typeof accountNotificationTypes)[number]
  | (typeof operatorNotificationTypes)[number]
  | typeof testNotificationType
)[];
export type NotificationType = (typeof notificationTypes)[number];

/** `data` of each type as receivers get it: names as on the wire, times in Unix seconds, money in USD. */
export interface NotificationData {
  "quota.threshold": {
    owner: "key" | "account" | "member" | "app";
    owner_id: string;
    environment: Environment;
    unit: "requests" | "tokens" | "USD";
    limit: number;
    used: number;
    /** The reached percentage of the limit. */
    threshold: number;
    window: { starts_at: number; ends_at: number };
    /** Only for a quota per window: a named span or seconds; and its models, unless it counts all. */
    per?: string | number;
    models?: string[];
    /** Only for a quota of one tag. */
    tag?: string;
  };
  "key.unused": {
    key_id: string;
    name: string;
    environment: Environment;
    created_at: number;
    last_used_at: number | null;
    days: number;
  };
  "key.expiring": {
    key_id: string;
    name: string;
    environment: Environment;
    expires_at: number;
    days: number;
  };
  /** Covers the requests of an account in an environment or, for operators, all. */
  "errors.rate": {
    environment: Environment | null;
    requests: number;
    failed: number;
    /** Percent. */
    rate: number;
    window_seconds: number;
  };
  "upstream.down": { upstream: string; since: number };
  "upstream.up": { upstream: string; down_seconds: number };
  "node.away": { node_id: string; name: string; since: number };
  "node.back": { node_id: string; name: string; away_seconds: number };
  /** `waiting`: tools and prompts that wait for approval. */
  "tool.changed": { server: string; waiting: number };
  "webhook.test": { webhook_id: string };
}

/** An event before it becomes a notification. */
export type Tidings = {
  [Type in NotificationType]: {
    readonly type: Type;
    /** The account to notify; null: operators. */
    readonly accountId: string | null;
    /** null if the event does not concern exactly one environment. */
    readonly environment: Environment | null;
    /** Identifies the event: subject, window and threshold. A repeated event is not sent again. */
    readonly once: string;
    readonly data: NotificationData[Type];
  };
}[NotificationType];

export type Notification = Tidings & {
  /** `evt_` and a UUIDv7; the `webhook-id` of every delivery. */
  readonly id: string;
  /** Unix seconds. */
  readonly at: number;
};

/** The receivers of a notification besides webhooks. */
export interface NotificationReceivers {
  /** True if people get mail. */
  mails: boolean;
  /** The only webhook to notify, whatever events it subscribes to. */
  webhookId?: string;
}

export interface NotificationStore {
  /**
   * Stores the notification with a delivery for each webhook and person to be notified. Does nothing if it is stored
   * already, so that only one of several processes sends it. Returns the number of deliveries; undefined: stored
   * before.
   */
  add(notice: Notification, receivers: NotificationReceivers): Promise<number | undefined>;
  find(id: string): Promise<Notification | undefined>;
  /** Deletes up to `limit` expired deliveries and notifications each, and returns their number. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Makes the notification of an event. */
export function notificationOf(tidings: Tidings, nowSeconds: number): Notification {
  return { ...tidings, id: `evt_${Bun.randomUUIDv7()}`, at: nowSeconds };
}
