// What accounts and operators are told of: the types of events, what each of them says, and the port by which they are kept.
import type { Environment } from "../api-key.ts";

/** Told to the account that it is about. */
export const accountNotificationTypes = ["quota.threshold", "key.unused", "key.expiring", "errors.rate"] as const;
/** Told to those who operate the installation. */
export const operatorNotificationTypes = [
  "upstream.down",
  "upstream.up",
  "node.away",
  "node.back",
  "tool.changed",
  "errors.rate",
] as const;
/** Made by the test of a webhook, for that one alone. */
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
    /** Percent of the limit that was reached. */
    threshold: number;
    window: { starts_at: number; ends_at: number };
    /** Only where the quota is per window: a span with a name, or seconds; and the models that it is for, where not for all. */
    per?: string | number;
    models?: string[];
    /** Only of a quota of one tag. */
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
  /** The requests are those of an account in an environment, or, for operators, all. */
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

/** Something to be told. */
export type Tidings = {
  [Type in NotificationType]: {
    readonly type: Type;
    /** The account that it is for; null: operators. */
    readonly accountId: string | null;
    /** Null where it is of no single one. */
    readonly environment: Environment | null;
    /** What is told once: subject, window and threshold. The same again is told to nobody. */
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

/** Those to whom a notice may go beside webhooks. */
export interface NotificationReach {
  /** Whether people are told by mail. */
  mails: boolean;
  /** The only one that is told, whatever it wants to be told. */
  webhookId?: string;
}

export interface NotificationStore {
  /**
   * Keeps it with a delivery for each webhook and person that is to be told, or, where the same was told, does nothing: of
   * several processes that see the same, one tells it. Gives how many deliveries there are; undefined: told before.
   */
  add(notice: Notification, reach: NotificationReach): Promise<number | undefined>;
  find(id: string): Promise<Notification | undefined>;
  /** Deletes deliveries and notices that are past their time, up to `limit` of either; gives how many. */
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Makes the notice of what is to be told. */
export function notificationOf(tidings: Tidings, nowSeconds: number): Notification {
  return { ...tidings, id: `evt_${Bun.randomUUIDv7()}`, at: nowSeconds };
}
