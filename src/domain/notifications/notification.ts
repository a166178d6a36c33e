// Notifications of accounts and operators: the types of events, their data, and the port of their store.
import type { QuotaOwner } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";
import type { AttemptCause } from "../usage/attempt-health.ts";

/** Types of events that are sent to the account concerned. */
export const accountNotificationTypes = [
  "quota.threshold",
  "key.unused",
  "key.expiring",
  "key.rotation_due",
  "model.shutdown",
  "errors.rate",
  "limit.requested",
  "limit.decided",
] as const;
/** Types of events that are sent to the operators of the installation. */
export const operatorNotificationTypes = [
  "upstream.down",
  "upstream.up",
  "upstream.failing",
  "upstream.recovered",
  "node.away",
  "node.back",
  "tool.changed",
  "errors.rate",
  "limit.requested",
  "quota.threshold",
] as const;
/** The test event of a webhook, sent only to that webhook. */
export const testNotificationType = "webhook.test";

export const notificationTypes = [
  "quota.threshold",
  "key.unused",
  "key.expiring",
  "key.rotation_due",
  "model.shutdown",
  "errors.rate",
  "upstream.down",
  "upstream.up",
  "upstream.failing",
  "upstream.recovered",
  "node.away",
  "node.back",
  "tool.changed",
  "limit.requested",
  "limit.decided",
  testNotificationType,
] as const satisfies readonly (
  | (typeof accountNotificationTypes)[number]
  | (typeof operatorNotificationTypes)[number]
  | typeof testNotificationType
)[];
export type NotificationType = (typeof notificationTypes)[number];

/**
 * The `data` of each notification type as receivers get it: names as in the API, times in Unix seconds, money in USD.
 */
export interface NotificationData {
  "quota.threshold": {
    owner: QuotaOwner;
    owner_id: string;
    environment: Environment;
    unit: "requests" | "tokens" | "USD";
    limit: number;
    used: number;
    /** Percentage of the limit that the usage has reached. */
    threshold: number;
    window: { starts_at: number; ends_at: number };
    /**
     * Only for a quota with a window: its span, as a name or in seconds. `models` is missing if the quota counts all
     * models.
     */
    per?: string | number;
    models?: string[];
    /** Only for a quota that counts one tag. */
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
  /** `ends_at`: the time until which the old key works and its successor can be fetched. */
  "key.rotation_due": {
    key_id: string;
    name: string;
    environment: Environment;
    ends_at: number;
    every_days: number;
  };
  /** A key of the account used the model in the last 30 days. `shutdown_date` is a date in UTC, such as 2026-12-11. */
  "model.shutdown": { model: string; shutdown_date: string; days: number };
  /** Covers the requests of one account in one environment. For operators, it covers all requests. */
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
  /** The last attempts of real requests failed. `models` is empty if no single model is at fault. */
  "upstream.failing": {
    upstream: string;
    models: readonly string[];
    cause: AttemptCause | null;
    status: number | null;
    failed: number;
    attempts: number;
    window_seconds: number;
    since: number;
  };
  "upstream.recovered": { upstream: string; failing_seconds: number };
  "node.away": { node_id: string; name: string; since: number };
  "node.back": { node_id: string; name: string; away_seconds: number };
  /** `waiting` is the number of tools and prompts that wait for approval. */
  "tool.changed": { server: string; waiting: number };
  /** A member asks for a higher quota: their own, or the account's, which only operators can grant. */
  "limit.requested": LimitRequestData & {
    account_id: string;
    email: string;
    /** The amount that is wanted in addition; null if the person named none. */
    amount: number | null;
    reason: string;
  };
  /** `amount` is added until `until`; both are null if the request was refused, or its raise was ended early. */
  "limit.decided": LimitRequestData & { amount: number | null; until: number | null };
  "webhook.test": { webhook_id: string };
}

interface LimitRequestData {
  request_id: string;
  person_id: string;
  owner: "member" | "account";
  environment: Environment;
  unit: "requests" | "tokens" | "usd";
  per: string | number;
  models?: string[];
  tag?: string;
}

/** An event that is to become a notification. */
export type Tidings = {
  [Type in NotificationType]: {
    readonly type: Type;
    /** The account to notify. Null means that operators are notified. */
    readonly accountId: string | null;
    /** Null if the event does not concern a single environment. */
    readonly environment: Environment | null;
    /**
     * A text that is the same if the event repeats, such as subject, window and threshold. A repeated event is not sent
     * again.
     */
    readonly once: string;
    readonly data: NotificationData[Type];
  };
}[NotificationType];

export type Notification = Tidings & {
  /** `evt_` and a UUIDv7. Sent as `webhook-id` with every delivery. */
  readonly id: string;
  /** Unix seconds. */
  readonly at: number;
};

/** The receivers of a notification in addition to the subscribed webhooks. */
export interface NotificationReceivers {
  /** True if people get the notification by mail. */
  mails: boolean;
  /** If set, only this webhook is notified, whatever events it subscribes to. */
  webhookId?: string;
}

export interface NotificationStore {
  /**
   * Stores the notification, with a delivery for each webhook and person to notify. Returns the number of deliveries.
   * If the notification is stored already, does nothing and returns undefined, so that only one of several processes
   * sends it.
   */
  add(notice: Notification, receivers: NotificationReceivers): Promise<number | undefined>;
  find(id: string): Promise<Notification | undefined>;
  /** Deletes up to `limit` expired deliveries and up to `limit` notifications. Returns the larger number. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Makes the notification of an event. */
export function notificationOf(tidings: Tidings, nowSeconds: number): Notification {
  return { ...tidings, id: `evt_${Bun.randomUUIDv7()}`, at: nowSeconds };
}
