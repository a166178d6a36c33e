// Creates, changes and tests webhooks, checks permissions, and records audit events.
import { fieldError, forbidden, GatewayError, invalidRequest } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import {
  accountNotificationTypes,
  type NotificationStore,
  type NotificationType,
  notificationOf,
  operatorNotificationTypes,
  testNotificationType,
} from "../domain/notifications/notification.ts";
import {
  type ListedDelivery,
  maxWebhooks,
  type SecuredWebhook,
  type WebhookChanges,
  type WebhookFormat,
  type WebhookOwner,
  type WebhookSecret,
  type WebhookStore,
} from "../domain/notifications/webhook.ts";
import { actorOf, ownOnly, type Principal } from "../domain/principal.ts";
import type { SealFor } from "../domain/seal.ts";
import type { EgressRules } from "../egress/addresses.ts";
import { requireKeyManager } from "../policy/manage/delegation.ts";
import { auditEvent, changedMembers, type Origin } from "../policy/records/audit.ts";
import type { DeliveryWire, WebhookWire } from "../wire/webhooks.ts";
import { webhookSecretPurpose } from "./delivery/deliverer.ts";
import { receiverUrl } from "./delivery/receiver.ts";
import { newWebhookSecret } from "./delivery/signature.ts";

export interface WebhooksOptions {
  store: WebhookStore;
  notices: Pick<NotificationStore, "add">;
  sealFor: SealFor;
  rules: EgressRules;
  /** Rules for the addresses of operators' webhooks. */
  operatorRules: EgressRules;
  /** Called when there is something to deliver. */
  wake(): void;
}

/** Members of a webhook in a request. A member that is left out stays unchanged. */
export interface WebhookRequest {
  url?: string | undefined;
  /** The format of the body. Can be set only for a new webhook. Default: `standard`. */
  format?: WebhookFormat | null | undefined;
  /** The integration key of PagerDuty. Can be set only for a new webhook of the format `pagerduty`. */
  routing_key?: string | null | undefined;
  description?: string | null | undefined;
  events?: readonly NotificationType[] | null | undefined;
  enabled?: boolean | undefined;
}

/** The settings of a webhook that a request may set. */
type WebhookSettings = Pick<SecuredWebhook, "url" | "format" | "description" | "events" | "isEnabled">;

/** A new webhook with its secret, which is shown once. */
export interface MadeWebhook {
  webhook: SecuredWebhook;
  secret: string;
}

/**
 * Returns the account as owner. Only owners, admins and unrestricted account keys may manage webhooks. A key made by
 * another key may not, because its webhooks would outlive the key.
 */
export function accountOwner(principal: Principal): WebhookOwner {
  requireKeyManager(principal);
  if (ownOnly(principal) !== null) {
    throw forbidden("Webhooks are for owners and admins of the account, and for keys that are the account's.");
  }
  if (!principal.person && principal.keys.length > 1) {
    throw forbidden("A key that another key made cannot manage webhooks; use that one, or sign in.");
  }
  return { accountId: principal.account.id, environment: principal.environment };
}

export const operatorsOwner: WebhookOwner = { accountId: null, environment: null };

export class Webhooks {
  readonly #options: WebhooksOptions;

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  list(owner: WebhookOwner): Promise<SecuredWebhook[]> {
    return this.#options.store.list(owner);
  }

  /** Returns a webhook of any owner. */
  find(id: string): Promise<SecuredWebhook | undefined> {
    return this.#options.store.find(id);
  }

  /** Returns the webhook. Throws `not_found` if it is missing or another owner's. */
  async require(owner: WebhookOwner, id: string): Promise<SecuredWebhook> {
    const found = await this.#options.store.find(id);
    if (found?.accountId === owner.accountId && found.environment === owner.environment) return found;
    throw unknown(owner, id);
  }

  async create(
    principal: Principal,
    owner: WebhookOwner,
    request: WebhookRequest,
    origin: Origin,
    id = `whk_${Bun.randomUUIDv7()}`,
  ): Promise<MadeWebhook> {
    const { store } = this.#options;
    const settings = this.settings(owner, request);
    const { secret, record } = this.#newSecret(id, routingKeyFor(settings.format, request.routing_key));
    const webhook: SecuredWebhook = {
      ...owner,
      id,
      ...settings,
      disabledReason: null,
      secrets: [record],
      createdBy: actorOf(principal).id,
      createdAt: origin.nowSeconds,
    };
    const event = auditEvent(
      "webhook.created",
      principal,
      origin,
      about(webhook, audited(webhook, settingsToWire(webhook))),
    );
    if (await store.insert(webhook, event)) return { webhook, secret };
    throw invalidRequest(`There are ${maxWebhooks} webhooks already, the most there may be. Delete one first.`);
  }

  /** Returns the settings of a new webhook. Throws `invalid_request`. */
  settings(owner: WebhookOwner, request: WebhookRequest): WebhookSettings {
    return {
      url: receiverUrl(request.url ?? "", this.#rulesFor(owner)),
      format: request.format ?? "standard",
      description: descriptionOf(request.description ?? ""),
      events: eventsOf(owner, request.events ?? []),
      isEnabled: request.enabled ?? true,
    };
  }

  /** Returns the routing key of a PagerDuty webhook, a secret. Undefined for other webhooks. */
  routingKey({ id, format, secrets }: SecuredWebhook): string | undefined {
    const sealed = format === "pagerduty" ? secrets.at(-1)?.sealed : undefined;
    return sealed === undefined ? undefined : this.#options.sealFor(webhookSecretPurpose(id)).open(sealed);
  }

  async update(
    principal: Principal,
    current: SecuredWebhook,
    request: WebhookRequest,
    origin: Origin,
  ): Promise<SecuredWebhook> {
    const changes: WebhookChanges = {};
    if (request.url !== undefined) changes.url = receiverUrl(request.url, this.#rulesFor(current));
    if (request.description !== undefined) changes.description = descriptionOf(request.description ?? "");
    if (request.events !== undefined) changes.events = eventsOf(current, request.events ?? []);
    if (request.enabled !== undefined) changes.isEnabled = request.enabled;
    const detail = changedMembers(settingsToWire(current), settingsToWire({ ...current, ...changes }));
    if (Object.keys(detail).length === 0) return current;
    const event = auditEvent("webhook.updated", principal, origin, about(current, audited(current, detail)));
    return (await this.#options.store.update(current.id, changes, event)) ?? gone(current);
  }

  async rotateSecret(
    principal: Principal,
    current: SecuredWebhook,
    { overlapSeconds, routingKey }: { overlapSeconds: number; routingKey: string | null | undefined },
    origin: Origin,
  ): Promise<MadeWebhook> {
    const { secret, record } = this.#newSecret(current.id, routingKeyFor(current.format, routingKey));
    const oldEndAt = origin.nowSeconds + overlapSeconds;
    const detail = { overlap_seconds: overlapSeconds, old_end_at: oldEndAt };
    const event = auditEvent("webhook.secret_rotated", principal, origin, about(current, detail));
    const webhook = await this.#options.store.rotateSecret(current.id, record, oldEndAt, event);
    return { webhook: webhook ?? gone(current), secret };
  }

  async delete(principal: Principal, current: SecuredWebhook, origin: Origin): Promise<void> {
    const event = auditEvent(
      "webhook.deleted",
      principal,
      origin,
      about(current, audited(current, { url: current.url })),
    );
    if (!(await this.#options.store.delete(current.id, event))) gone(current);
  }

  /** Queues a test event for this webhook only. Returns the event's id. */
  async test(webhook: SecuredWebhook, nowSeconds: number): Promise<string> {
    if (!webhook.isEnabled)
      throw invalidRequest("The webhook is disabled. Enable it first: PATCH it with enabled true.");
    const { id, accountId, environment } = webhook;
    const once = `webhook.test ${id} ${Bun.randomUUIDv7()}`;
    const notice = notificationOf(
      { type: testNotificationType, accountId, environment, once, data: { webhook_id: id } },
      nowSeconds,
    );
    await this.#options.notices.add(notice, { mails: false, webhookId: id });
    this.#options.wake();
    return notice.id;
  }

  #rulesFor({ accountId }: WebhookOwner): EgressRules {
    return accountId === null ? this.#options.operatorRules : this.#options.rules;
  }

  #newSecret(webhookId: string, secret = newWebhookSecret()): { secret: string; record: WebhookSecret } {
    const sealed = this.#options.sealFor(webhookSecretPurpose(webhookId)).seal(secret);
    return { secret, record: { sealed, last4: secret.slice(-4), expiresAt: null } };
  }
}

export function webhookToWire(webhook: SecuredWebhook, nowSeconds: number): WebhookWire {
  return {
    object: "webhook",
    id: webhook.id,
    ...settingsToWire(webhook),
    environment: webhook.environment,
    disabled_reason: webhook.disabledReason,
    secrets: webhook.secrets
      .filter(({ expiresAt }) => expiresAt === null || expiresAt > nowSeconds)
      .map(({ last4, expiresAt }) => ({ last4, expires_at: expiresAt })),
    created_by: webhook.createdBy,
    created_at: webhook.createdAt,
  };
}

export function deliveryToWire({
  id,
  noticeId,
  type,
  state,
  tries,
  createdAt,
  dueAt,
  endedAt,
}: ListedDelivery): DeliveryWire {
  return {
    object: "webhook_delivery",
    id,
    event_id: noticeId,
    type,
    state,
    attempts: tries.map(({ durationMs, ...one }) => ({ ...one, duration_ms: durationMs })),
    created_at: createdAt,
    next_attempt_at: state === "pending" ? dueAt : null,
    ended_at: endedAt,
  };
}

/** Returns the settings in the form of the API. */
export function settingsToWire({ url, format, description, events, isEnabled }: WebhookSettings) {
  return { url, format, description, events: [...events], enabled: isEnabled };
}

/**
 * Returns the routing key of a PagerDuty webhook. Throws `invalid_request` if it is missing, or if another format has
 * one.
 */
function routingKeyFor(format: WebhookFormat, key: string | null | undefined): string | undefined {
  if (format === "pagerduty" && !key) {
    throw fieldError("routing_key", "is required for PagerDuty: the integration key of a service's Events API v2.");
  }
  if (format !== "pagerduty" && key) throw fieldError("routing_key", "is only for the format pagerduty.");
  return key ?? undefined;
}

function descriptionOf(text: string): string {
  if (/\p{Cc}/u.test(text)) throw fieldError("description", "must have no control characters, such as line breaks.");
  return text.trim();
}

/** Returns the events in their usual order, without repetitions, so that a reordered list is no change. */
function eventsOf(
  { accountId }: Pick<WebhookOwner, "accountId">,
  wanted: readonly NotificationType[],
): NotificationType[] {
  const known: readonly NotificationType[] = accountId === null ? operatorNotificationTypes : accountNotificationTypes;
  const other = wanted.find((type) => !known.includes(type));
  if (other === undefined) return known.filter((type) => wanted.includes(type));
  throw fieldError("events", `${other} is not among those that this webhook can get: ${known.join(", ")}.`);
}

/** Reports whether everybody who has the webhook's URL can post to its channel. */
export function hasSecretUrl(format: string | null | undefined): boolean {
  return format === "slack" || format === "teams";
}

/** Returns the detail of an audit event without a URL that is a credential. */
function audited({ format }: SecuredWebhook, detail: Record<string, unknown>): Record<string, unknown> {
  return "url" in detail && hasSecretUrl(format) ? { ...detail, url: "[secret]" } : detail;
}

function about({ accountId, id }: SecuredWebhook, detail: Record<string, unknown>) {
  return { accountId, targetId: id, detail };
}

function unknown({ accountId }: WebhookOwner, id: string): GatewayError {
  const list = accountId === null ? "/v1/admin/webhooks" : "/v1/webhooks";
  return new GatewayError("not_found", `There is no webhook ${shown(id)}. GET ${list} lists those that there are.`);
}

/** Throws `not_found` for a webhook that was deleted during the request. */
function gone(webhook: SecuredWebhook): never {
  throw unknown(webhook, webhook.id);
}
