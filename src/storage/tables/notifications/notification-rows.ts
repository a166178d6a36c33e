// Converts notifications, webhooks and deliveries between rows and records.

import type { Incident } from "../../../domain/notifications/incident.ts";
import type { Notification } from "../../../domain/notifications/notification.ts";
import type { Delivery, Webhook, WebhookSecret } from "../../../domain/notifications/webhook.ts";
import { flag, integer, json, table, text, words } from "../../sql/table.ts";

interface NotificationRow extends Omit<Notification, "data"> {
  data: unknown;
}

export const notices = table<NotificationRow>({
  id: text,
  at: integer,
  type: text,
  accountId: text,
  environment: text,
  once: text,
  data: json,
});

export const webhooks = table<Webhook & { secrets: readonly WebhookSecret[] }>({
  id: text,
  accountId: text,
  environment: text,
  url: text,
  format: text,
  description: text,
  events: words,
  isEnabled: flag,
  disabledReason: text,
  secrets: json,
  createdBy: text,
  createdAt: integer,
});

/** A delivery with the members that the queue needs. */
export interface QueuedDelivery extends Delivery {
  target: string;
  owner: string;
  claim: string | null;
  claimedUntil: number;
}

export const deliveries = table<QueuedDelivery>({
  id: text,
  noticeId: text,
  webhookId: text,
  personId: text,
  target: text,
  owner: text,
  state: text,
  tries: json,
  createdAt: integer,
  dueAt: integer,
  endedAt: integer,
  claim: text,
  claimedUntil: integer,
});

export const incidents = table<Incident>({ subject: text, replicaId: text, since: integer });
