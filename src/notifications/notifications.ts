// Stores each notification once and queues its deliveries.
import { type Clock, elapsedMs } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type NotificationStore, notificationOf, type Tidings } from "../domain/notifications/notification.ts";

export interface NotificationsOptions {
  store: Pick<NotificationStore, "add">;
  clock: Pick<Clock, "nowSeconds" | "monotonicMs">;
  log: Log;
  /** True if notifications are also sent by mail. */
  mails: boolean;
  /** Called when there are new deliveries. */
  wake(): void;
}

/** Pause after each write, as a multiple of the write's duration: SQLite writes in the thread that serves requests. */
const restFactor = 4;
const maxRestMs = 100;

/** Stores notifications. Never rejects; false means that the notification was not stored and must be repeated. */
export interface Notifier {
  notify(tidings: Tidings): Promise<boolean>;
}

export class Notifications implements Notifier {
  readonly #options: NotificationsOptions;
  readonly #figures = { stored: 0, failures: 0 };
  #isFailing = false;
  /** Writes run one after another, with a pause after each. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: NotificationsOptions) {
    this.#options = options;
  }

  /** Number of stored notifications, and of failed writes, of this process. */
  get figures(): Readonly<{ stored: number; failures: number }> {
    return this.#figures;
  }

  notify(tidings: Tidings): Promise<boolean> {
    const { clock } = this.#options;
    let startMs = 0;
    const storing = this.#turn.then(() => {
      startMs = clock.monotonicMs();
      return this.#store(tidings);
    });
    this.#turn = storing.then(() => Bun.sleep(Math.min(maxRestMs, restFactor * elapsedMs(clock, startMs))));
    return storing;
  }

  async #store(tidings: Tidings): Promise<boolean> {
    const { store, clock, log, mails, wake } = this.#options;
    try {
      const deliveries = await store.add(notificationOf(tidings, clock.nowSeconds()), { mails });
      this.#isFailing = false;
      if (deliveries === undefined) return true;
      this.#figures.stored++;
      log.info("notice", { type: tidings.type, account_id: tidings.accountId, deliveries });
      if (deliveries > 0) wake();
      return true;
    } catch (error) {
      const { detail } = error as { detail?: unknown };
      this.#figures.failures++;
      if (!this.#isFailing) log.warn("notice_not_kept", { type: tidings.type, detail: String(detail ?? error) });
      this.#isFailing = true;
      return false;
    }
  }
}
