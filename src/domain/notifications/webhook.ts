// Webhooks: URLs to which notifications are posted, and the results of deliveries.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { NotificationType } from "./notification.ts";

/** Maximum number of webhooks. Each causes attempts for every event. */
export const maxWebhooks = 20;

/**
 * The body that a webhook gets: `standard` is Standard Webhooks, the others are those of Slack, Microsoft Teams
 * (workflows), PagerDuty (Events API v2) and Alertmanager (API v2).
 */
export const webhookFormats = ["standard", "slack", "teams", "pagerduty", "alertmanager"] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

export interface Webhook {
  /** `whk_` and a UUIDv7. */
  id: string;
  /** The webhook's account. Null if the webhook belongs to the operators. */
  accountId: string | null;
  /**
   * The environment whose events the webhook gets. Null for webhooks of operators, which get all events for operators.
   */
  environment: Environment | null;
  url: string;
  format: WebhookFormat;
  description: string;
  /** The event types that the webhook gets. Empty means every type. */
  events: readonly NotificationType[];
  isEnabled: boolean;
  /** The reason why the webhook was disabled automatically. Null if it is enabled, or a person disabled it. */
  disabledReason: "gone" | null;
  createdBy: string | null;
  /** Unix seconds. */
  createdAt: number;
}

/** The signing secret, or the routing key of a webhook for PagerDuty. */
export interface WebhookSecret {
  /** `whsec_…` or the routing key, sealed. */
  sealed: string;
  last4: string;
  /**
   * Unix seconds. Set when a new secret replaces this one; until then, deliveries are signed with both. Null for the
   * newest secret.
   */
  expiresAt: number | null;
}

/** A webhook with its secrets, the newest last. */
export interface SecuredWebhook extends Webhook {
  secrets: readonly WebhookSecret[];
}

export type WebhookChanges = Partial<Pick<Webhook, "url" | "description" | "events" | "isEnabled">>;

/** The owner of webhooks: an account in an environment, or the operators (both members null). */
export type WebhookOwner = Pick<Webhook, "accountId" | "environment">;

export interface WebhookStore {
  /** Lists all webhooks of an owner, oldest first. There are no pages, because an owner has few webhooks. */
  list(owner: WebhookOwner): Promise<SecuredWebhook[]>;
  find(id: string): Promise<SecuredWebhook | undefined>;
  /** Adds a webhook. Returns false if the owner has `maxWebhooks` already. */
  insert(webhook: SecuredWebhook, event: AuditEvent): Promise<boolean>;
  update(id: string, changes: WebhookChanges, event: AuditEvent): Promise<SecuredWebhook | undefined>;
  /** Adds a new secret. The previous secret ends at `oldEndAt`, and earlier ones end now. */
  rotateSecret(
    id: string,
    secret: WebhookSecret,
    oldEndAt: number,
    event: AuditEvent,
  ): Promise<SecuredWebhook | undefined>;
  /** Deletes the webhook with its deliveries. */
  delete(id: string, event: AuditEvent): Promise<boolean>;
  /** Disables a webhook whose receiver no longer exists, and drops its waiting deliveries. */
  disable(id: string, event: AuditEvent): Promise<void>;
}

export type DeliveryState = "pending" | "delivered" | "failed";

/** One attempt of a delivery. */
export interface DeliveryTry {
  /** Unix seconds. */
  at: number;
  /** HTTP status of the receiver's answer. Null if there was no answer. */
  status: number | null;
  /** A short reason if the receiver did not answer or refused. Otherwise null. */
  error: string | null;
  durationMs: number;
}

export interface Delivery {
  /** `dlv_` and a UUIDv7. */
  id: string;
  noticeId: string;
  /** The webhook to which the notification is sent. For a mail this is null, and `personId` is set. */
  webhookId: string | null;
  personId: string | null;
  state: DeliveryState;
  tries: readonly DeliveryTry[];
  /** Unix seconds. */
  createdAt: number;
  /** When the next attempt is due. Meaningless once the delivery has ended. */
  dueAt: number;
  endedAt: number | null;
}

/** A delivery with the type of its notification, for lists. */
export interface ListedDelivery extends Delivery {
  type: NotificationType;
}

/** Limits of one claim of deliveries. */
export interface ClaimBounds {
  limit: number;
  /** Maximum deliveries for one webhook or person. `perOwner` is the maximum for one owner. Running attempts count. */
  perTarget: number;
  perOwner: number;
  /**
   * The running attempts of this process. They count towards the limits. If the clock jumps, their claims may look
   * expired.
   */
  underWay: readonly Pick<ClaimedDelivery, "id" | "target" | "owner">[];
  /** Seconds after which another process may claim the delivery. */
  leaseSeconds: number;
}

/** A delivery that this process has claimed. No other process attempts the delivery. */
export interface ClaimedDelivery extends Delivery {
  /** Identifies the claim. If another process claims the delivery later, results of this claim are ignored. */
  claim: string;
  target: string;
  owner: string;
}

/** The result of an attempt and the state of the delivery after it. */
export interface TriedDelivery {
  state: DeliveryState;
  lastTry: DeliveryTry;
  dueAt: number;
}

/** The number of deliveries that wait, and the time that they wait. */
export interface QueueLength {
  /** Number of waiting deliveries, including retries. Beyond a maximum, they are not counted further. */
  waiting: number;
  /** Seconds since the oldest unclaimed delivery was due. Zero if none is due. */
  overdueSeconds: number;
}

export interface DeliveryStore {
  /** Claims due deliveries. Webhooks and people take turns, each with its oldest delivery. */
  claim(nowSeconds: number, bounds: ClaimBounds): Promise<ClaimedDelivery[]>;
  tried(delivery: ClaimedDelivery, outcome: TriedDelivery): Promise<void>;
  length(nowSeconds: number): Promise<QueueLength>;
  /** Lists deliveries of a webhook, newest first, beginning after the delivery `after`. */
  list(webhookId: string, page: { after: string | undefined; limit: number }): Promise<ListedDelivery[]>;
}

/** Returns the owner in the form in which deliveries store it. */
export function ownerOf(accountId: string | null): string {
  return accountId ?? "operators";
}
