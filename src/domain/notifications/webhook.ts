// Webhooks: addresses to which notices are posted, and what became of each delivery.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { NotificationType } from "./notification.ts";

/** Each costs attempts at every event. */
export const maxWebhooks = 20;

export interface Webhook {
  /** `whk_` and a UUIDv7. */
  id: string;
  /** The account whose it is; null: the operators'. */
  accountId: string | null;
  /** It is told of this one alone; null for operators': whatever is theirs to know. */
  environment: Environment | null;
  url: string;
  description: string;
  /** The types that it is told; empty: all. */
  events: readonly NotificationType[];
  isEnabled: boolean;
  /** Why it was disabled by itself; null where somebody did it, or where it is enabled. */
  disabledReason: "gone" | null;
  createdBy: string | null;
  /** Unix seconds. */
  createdAt: number;
}

/** The key of signatures. */
export interface WebhookSecret {
  /** `whsec_…`, sealed. */
  sealed: string;
  last4: string;
  /** Unix seconds; set when another takes its place: until then there are two signatures. */
  expiresAt: number | null;
}

/** With its secrets, the newest last. */
export interface SecuredWebhook extends Webhook {
  secrets: readonly WebhookSecret[];
}

export type WebhookChanges = Partial<Pick<Webhook, "url" | "description" | "events" | "isEnabled">>;

/** Whose webhooks: an account's in an environment, or, with null for both, the operators'. */
export type WebhookOwner = Pick<Webhook, "accountId" | "environment">;

export interface WebhookStore {
  /** Oldest first: there are few. */
  list(owner: WebhookOwner): Promise<SecuredWebhook[]>;
  find(id: string): Promise<SecuredWebhook | undefined>;
  /** False where the owner has `maxWebhooks` already. */
  insert(webhook: SecuredWebhook, event: AuditEvent): Promise<boolean>;
  update(id: string, changes: WebhookChanges, event: AuditEvent): Promise<SecuredWebhook | undefined>;
  /** The one before goes on until `oldEndAt`; those before it end. */
  rotateSecret(
    id: string,
    secret: WebhookSecret,
    oldEndAt: number,
    event: AuditEvent,
  ): Promise<SecuredWebhook | undefined>;
  /** With its deliveries. */
  delete(id: string, event: AuditEvent): Promise<boolean>;
  /** The receiver said that it is gone; what waits for it is given up. */
  disable(id: string, event: AuditEvent): Promise<void>;
}

export type DeliveryState = "pending" | "delivered" | "failed";

/** One attempt. */
export interface DeliveryTry {
  /** Unix seconds. */
  at: number;
  /** The status that the receiver answered; null: none. */
  status: number | null;
  /** One of a few words for why there is none, or why it does not count. */
  error: string | null;
  durationMs: number;
}

export interface Delivery {
  /** `dlv_` and a UUIDv7. */
  id: string;
  noticeId: string;
  /** The webhook, or the person who is written to. */
  webhookId: string | null;
  personId: string | null;
  state: DeliveryState;
  tries: readonly DeliveryTry[];
  /** Unix seconds. */
  createdAt: number;
  /** When it is tried next; meaningless once it has ended. */
  dueAt: number;
  endedAt: number | null;
}

/** A delivery as a log shows it. */
export interface ListedDelivery extends Delivery {
  type: NotificationType;
}

/** What a claim may take: places that are free. */
export interface ClaimBounds {
  limit: number;
  /** For one webhook or person, and for one owner, with those that are under way. */
  perTarget: number;
  perOwner: number;
  /** What this process has under way: they take places, and a clock that jumps makes their claims look old. */
  underWay: readonly Pick<ClaimedDelivery, "id" | "target" | "owner">[];
  /** Seconds after which another process may take what this one has not said the end of. */
  leaseSeconds: number;
}

/** A delivery that this process, and no other, is to try. */
export interface ClaimedDelivery extends Delivery {
  /** Names the claim: once another has it, what this one says of it counts no more. */
  claim: string;
  target: string;
  owner: string;
}

/** What came of an attempt. */
export interface TriedDelivery {
  state: DeliveryState;
  lastTry: DeliveryTry;
  dueAt: number;
}

/** How long the queue is. */
export interface QueueLength {
  /** Deliveries that wait, those that are tried again later among them; counted up to a bound. */
  waiting: number;
  /** Seconds for which the oldest one that nobody has taken is due; 0 where none is. */
  overdueSeconds: number;
}

export interface DeliveryStore {
  /** Takes what is due: of each target in turn, its oldest. */
  claim(nowSeconds: number, bounds: ClaimBounds): Promise<ClaimedDelivery[]>;
  tried(delivery: ClaimedDelivery, outcome: TriedDelivery): Promise<void>;
  length(nowSeconds: number): Promise<QueueLength>;
  /** Newest first; those before `after`. */
  list(webhookId: string, page: { after: string | undefined; limit: number }): Promise<ListedDelivery[]>;
}

/** The owner as deliveries name it. */
export function ownerOf(accountId: string | null): string {
  return accountId ?? "operators";
}
