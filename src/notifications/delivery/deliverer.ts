// Delivers queued notifications in the background, with limited concurrency. Failed deliveries are repeated for three
// days; each is handled by one process at a time.

import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { longLived } from "../../base/long-lived.ts";
import type { Notification, NotificationStore } from "../../domain/notifications/notification.ts";
import type { ClaimedDelivery, DeliveryStore, QueueLength, WebhookStore } from "../../domain/notifications/webhook.ts";
import type { MailSender } from "../../domain/people/mail.ts";
import type { PersonStore } from "../../domain/people/person.ts";
import type { SealFor } from "../../domain/seal.ts";
import type { EgressRules } from "../../egress/addresses.ts";
import { auditEvent } from "../../policy/records/audit.ts";
import { bodyIn } from "./formats.ts";
import { noticeMail } from "./notification-mail.ts";
import { type PostOptions, post } from "./post.ts";
import { maxAttempts, waitAfter } from "./schedule.ts";
import { signatureHeaders } from "./signature.ts";

export interface DelivererOptions {
  deliveries: DeliveryStore;
  notices: Pick<NotificationStore, "find">;
  webhooks: Pick<WebhookStore, "find" | "disable">;
  people: Pick<PersonStore, "findPerson">;
  /** Undefined if no mail server is configured. */
  mail: MailSender | undefined;
  sealFor: SealFor;
  posting: Omit<PostOptions, "clock" | "stop">;
  /** Rules for the addresses of operators' webhooks. */
  operatorRules: EgressRules;
  /** Returns the public URL of the gateway, without a slash at the end. */
  publicOrigin(): string;
  clock: Clock;
  log: Log;
  /** Milliseconds between polls for deliveries that other processes queued. Default: 5,000. */
  everyMs?: number;
  random?: () => number;
}

export const deliveryWays = ["webhook", "mail"] as const;
/** Outcomes of an attempt: delivered, to be repeated, or failed for good. */
export const attemptEnds = ["delivered", "again", "failed"] as const;
type AttemptEnd = (typeof attemptEnds)[number];

export interface DeliveryFigures extends QueueLength {
  underWay: number;
  attempts: Readonly<Record<(typeof deliveryWays)[number], Readonly<Record<AttemptEnd, number>>>>;
}

/** Result of an attempt. */
interface Outcome {
  status: number | null;
  error: string | null;
  durationMs: number;
  result: "delivered" | "again" | "never";
  retryAfterSeconds?: number | undefined;
}

const defaultEveryMs = 5_000;
const { bounds } = longLived.webhookDelivery;
const maxAtOnce = bounds.total.most;
/** Maximum concurrent deliveries per webhook, and per account, so that slow receivers leave slots to others. */
const maxOfTarget = 2;
const maxOfOwner = bounds.account.most;
/** Seconds for which a process owns a delivery; longer than any attempt. */
const leaseSeconds = 60;
/** Milliseconds between measurements of the queue, for metrics. */
const measuredMs = 15_000;
/** Milliseconds that a stop waits for running attempts, and then again after it has cancelled them. */
const graceMs = 1_000;

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #underWay = new Map<ClaimedDelivery, Promise<void>>();
  #taking: Promise<void> | undefined;
  #again = false;
  #isFailing = false;
  readonly #stop = new Cancellation();
  #isClosed = false;
  #queue: QueueLength = { waiting: 0, overdueSeconds: 0 };
  #measuredMs = Number.NEGATIVE_INFINITY;
  readonly #attempts = { webhook: noAttempts(), mail: noAttempts() };

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.wake(), options.everyMs ?? defaultEveryMs);
    this.#timer.unref();
  }

  /** Returns the figures for metrics. The length of the queue is at most 15 seconds old. */
  get figures(): DeliveryFigures {
    return { ...this.#queue, underWay: this.#underWay.size, attempts: this.#attempts };
  }

  /** Polls for deliveries now. */
  wake(): void {
    if (this.#isClosed) return;
    if (this.#taking) {
      this.#again = true;
      return;
    }
    this.#again = false;
    this.#taking = this.#take().finally(() => {
      this.#taking = undefined;
      if (this.#again) this.wake();
    });
  }

  /** Waits briefly for running attempts, then cancels them. A later process repeats them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#taking;
    const ended = Promise.all(this.#underWay.values());
    if (this.#underWay.size === 0) return;
    await Promise.race([ended, Bun.sleep(graceMs)]);
    this.#stop.cancel();
    await Promise.race([ended, Bun.sleep(graceMs)]);
  }

  async #take(): Promise<void> {
    const { deliveries, clock, log } = this.#options;
    const limit = maxAtOnce - this.#underWay.size;
    try {
      await this.#measure();
      if (limit <= 0) return;
      const claimed = await deliveries.claim(clock.nowSeconds(), {
        ...{ limit, leaseSeconds, perTarget: maxOfTarget, perOwner: maxOfOwner },
        underWay: [...this.#underWay.keys()],
      });
      this.#isFailing = false;
      for (const delivery of claimed) {
        const done = this.#deliver(delivery).finally(() => {
          this.#underWay.delete(delivery);
          this.wake();
        });
        this.#underWay.set(delivery, done);
      }
    } catch (error) {
      const { detail } = error as { detail?: unknown };
      if (!this.#isFailing) log.warn("deliveries_not_read", { detail: String(detail ?? error) });
      this.#isFailing = true;
    }
  }

  async #measure(): Promise<void> {
    const { deliveries, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#measuredMs < measuredMs) return;
    this.#measuredMs = nowMs;
    this.#queue = await deliveries.length(clock.nowSeconds());
  }

  /**
   * Makes one attempt. Never rejects. If its result cannot be stored, it is repeated after the lease, with the same
   * `webhook-id`.
   */
  async #deliver(delivery: ClaimedDelivery): Promise<void> {
    const { deliveries, notices, clock, log, random = Math.random } = this.#options;
    try {
      const notice = await notices.find(delivery.noticeId);
      const { result, retryAfterSeconds, ...said } = notice ? await this.#attempt(delivery, notice) : missing;
      if (this.#stop.cancelled && result !== "delivered") return;
      const at = clock.nowSeconds();
      const failed = delivery.tries.length + 1;
      const wait = result === "again" ? waitAfter(failed, retryAfterSeconds, random) : undefined;
      const state = result === "delivered" ? "delivered" : wait === undefined ? "failed" : "pending";
      this.#attempts[delivery.webhookId === null ? "mail" : "webhook"][state === "pending" ? "again" : state]++;
      await deliveries.tried(delivery, { state, lastTry: { at, ...said }, dueAt: at + (wait ?? 0) });
      if (state === "failed") {
        const { webhookId, noticeId } = delivery;
        log.warn("notice_not_delivered", {
          webhook_id: webhookId,
          notice_id: noticeId,
          attempts: failed,
          of: maxAttempts,
        });
      }
    } catch (error) {
      const { detail } = error as { detail?: unknown };
      log.warn("delivery_not_written", { delivery_id: delivery.id, detail: String(detail ?? error) });
    }
  }

  async #attempt(delivery: ClaimedDelivery, notice: Notification): Promise<Outcome> {
    const { webhookId, personId } = delivery;
    if (webhookId !== null) return this.#post(webhookId, notice);
    return personId === null ? missing : this.#mail(personId, notice);
  }

  async #post(webhookId: string, notice: Notification): Promise<Outcome> {
    const { webhooks, clock, sealFor, posting, operatorRules, publicOrigin } = this.#options;
    const webhook = await webhooks.find(webhookId);
    if (!webhook?.isEnabled) return { ...missing, error: "disabled" };
    const nowSeconds = clock.nowSeconds();
    const seal = sealFor(webhookSecretPurpose(webhookId));
    const secrets = webhook.secrets
      .filter(({ expiresAt }) => expiresAt === null || expiresAt > nowSeconds)
      .flatMap(({ sealed }) => seal.open(sealed) ?? []);
    if (secrets.length === 0) return { ...missing, error: "secret_lost" };
    const { format, accountId } = webhook;
    const body = bodyIn(format, notice, { origin: publicOrigin(), routingKey: secrets.at(-1) ?? "" });
    const isKey = format === "pagerduty";
    const headers = {
      "content-type": "application/json",
      "user-agent": "Headrace-Webhooks",
      ...(isKey ? {} : await signatureHeaders({ id: notice.id, body, nowSeconds }, secrets)),
    };
    const rules = accountId === null ? operatorRules : posting.rules;
    const posted = await post(webhook.url, { headers, body }, { ...posting, rules, clock, stop: this.#stop });
    const { status } = posted;
    if (status === 410) {
      const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
      const about = { accountId: webhook.accountId, targetId: webhookId, detail: { reason: "gone" } };
      await webhooks.disable(webhookId, auditEvent("webhook.disabled", { type: "system" }, origin, about));
    }
    const isTaken = status !== null && status >= 200 && status < 300;
    return { ...posted, result: isTaken ? "delivered" : status === 410 ? "never" : "again" };
  }

  async #mail(personId: string, notice: Notification): Promise<Outcome> {
    const { people, mail, clock, publicOrigin } = this.#options;
    const person = await people.findPerson(personId);
    if (!person || !mail) return missing;
    const startMs = clock.monotonicMs();
    let error: string | null = null;
    try {
      await mail.send(noticeMail(person.email, notice, publicOrigin()));
    } catch {
      // The mail server's log has the details.
      error = "not_mailed";
    }
    const durationMs = Math.round(clock.monotonicMs() - startMs);
    return { status: null, error, durationMs, result: error === null ? "delivered" : "again" };
  }
}

function noAttempts(): Record<AttemptEnd, number> {
  return { delivered: 0, again: 0, failed: 0 };
}

/** Result of an attempt whose webhook, user or notification no longer exists. */
const missing: Outcome = { status: null, error: "gone", durationMs: 0, result: "never" };

/** Returns the purpose for which a webhook's secrets are encrypted. */
export function webhookSecretPurpose(webhookId: string): string {
  return `webhook secret ${webhookId}`;
}
