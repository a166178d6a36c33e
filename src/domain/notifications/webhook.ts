// Webhooks: URLs to which notifications are posted, and the results of deliveries.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { NotificationType } from "./notification.ts";

/** Each webhook costs attempts for every event. */
export const maxWebhooks = 20;

export interface Webhook {
  /** `whk_` and a UUIDv7. */
  id: string;
  /** The account of the webhook; null: the operators'. */
  accountId: string | null;
  /**
   * The environment whose events the webhook gets; null for operators' webhooks, which get all events for operators.
   */
  environment: Environment | null;
  url: string;
  description: string;
  /** The event types that the webhook gets; empty: every type. */
  events: readonly NotificationType[];
  isEnabled: boolean;
  /** The reason why the webhook was disabled automatically; null if a person disabled it, or it is enabled. */
  disabledReason: "gone" | null;
  createdBy: string | null;
  /** Unix seconds. */
  createdAt: number;
}

/** The signing secret. */
export interface WebhookSecret {
  /** `whsec_…`, sealed. */
  sealed: string;
  last4: string;
  /** Unix seconds; set when another secret replaces this secret. Until that time, deliveries have two signatures. */
  expiresAt: number | null;
}

/** A webhook with its secrets, the newest last. */
export interface SecuredWebhook extends Webhook {
  secrets: readonly WebhookSecret[];
}

export type WebhookChanges = Partial<Pick<Webhook, "url" | "description" | "events" | "isEnabled">>;

/** The owner of webhooks: an account in an environment, or the operators (null for both). */
export type WebhookOwner = Pick<Webhook, "accountId" | "environment">;

export interface WebhookStore {
  /** Lists all webhooks of an owner, oldest first, without pages because there are few. */
  list(owner: WebhookOwner): Promise<SecuredWebhook[]>;
  find(id: string): Promise<SecuredWebhook | undefined>;
  /** Returns false if the owner has `maxWebhooks` already. */
  insert(webhook: SecuredWebhook, event: AuditEvent): Promise<boolean>;
  update(id: string, changes: WebhookChanges, event: AuditEvent): Promise<SecuredWebhook | undefined>;
  /** Lets the previous secret end at `oldEndAt`, and earlier ones now. */
  rotateSecret(
    id: string,
    secret: WebhookSecret,
    oldEndAt: number,
    event: AuditEvent,
  ): Promise<SecuredWebhook | undefined>;
  /** Deletes the webhook with its deliveries. */
  delete(id: string, event: AuditEvent): Promise<boolean>;
  /** Disables a webhook whose receiver is gone, and drops its waiting deliveries. */
  disable(id: string, event: AuditEvent): Promise<void>;
}

export type DeliveryState = "pending" | "delivered" | "failed";

/** An attempt of a delivery. */
export interface DeliveryTry {
  /** Unix seconds. */
  at: number;
  /** The status of the receiver's answer; null: none. */
  status: number | null;
  /** A short reason for a missing or unsuccessful answer. */
  error: string | null;
  durationMs: number;
}

export interface Delivery {
  /** `dlv_` and a UUIDv7. */
  id: string;
  noticeId: string;
  /** The webhook, or the person who gets the mail. */
  webhookId: string | null;
  personId: string | null;
  state: DeliveryState;
  tries: readonly DeliveryTry[];
  /** Unix seconds. */
  createdAt: number;
  /** The time of the next attempt; without meaning after the end. */
  dueAt: number;
  endedAt: number | null;
}

/** A delivery as the log lists it. */
export interface ListedDelivery extends Delivery {
  type: NotificationType;
}

/** Bounds of a claim: free slots. */
export interface ClaimBounds {
  limit: number;
  /** Maximum for one webhook or person, and for one owner, including running attempts. */
  perTarget: number;
  perOwner: number;
  /** The running attempts of this process. They take slots, and a clock jump may make their claims look expired. */
  underWay: readonly Pick<ClaimedDelivery, "id" | "target" | "owner">[];
  /** Seconds of the lease, after which another process may claim the delivery. */
  leaseSeconds: number;
}

/** A delivery that only this process attempts. */
export interface ClaimedDelivery extends Delivery {
  /** Identifies the claim: after another process claims the delivery, results of this claim are ignored. */
  claim: string;
  target: string;
  owner: string;
}

/** The result of an attempt. */
export interface TriedDelivery {
  state: DeliveryState;
  lastTry: DeliveryTry;
  dueAt: number;
}

/** The length of the queue. */
export interface QueueLength {
  /** Number of waiting deliveries, including retries, counted up to a bound. */
  waiting: number;
  /** Seconds since the oldest unclaimed delivery was due; 0 without one. */
  overdueSeconds: number;
}

export interface DeliveryStore {
  /** Claims due deliveries: the oldest of each target in turn. */
  claim(nowSeconds: number, bounds: ClaimBounds): Promise<ClaimedDelivery[]>;
  tried(delivery: ClaimedDelivery, outcome: TriedDelivery): Promise<void>;
  length(nowSeconds: number): Promise<QueueLength>;
  /** Lists deliveries, newest first, before `after`. */
  list(webhookId: string, page: { after: string | undefined; limit: number }): Promise<ListedDelivery[]>;
}

/** Returns the owner as deliveries store it. */
export function ownerOf(accountId: string | null): string {
  return accountId ?? "operators";
}
