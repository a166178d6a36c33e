// Checks all keys periodically: reports keys that expire soon, are unused, or used models that are shut down soon, and
// begins scheduled rotations.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import type { KeyRotationStore } from "../../domain/key-rotation.ts";
import type { KeySurvey, SurveyedKey } from "../../domain/notifications/key-survey.ts";
import type { Tidings } from "../../domain/notifications/notification.ts";
import type { Notifier } from "../notifications.ts";
import { PeriodicJob } from "./periodic-job.ts";

export interface KeyWatchOptions {
  survey: KeySurvey;
  rotations: Pick<KeyRotationStore, "begin">;
  teller: Notifier;
  /** Returns the models whose end was announced, with the time in Unix seconds. */
  endingModels(): readonly EndingModel[];
  /** Reports whether this process checks the keys: only one process does, because all would report the same. */
  isFirst(): boolean;
  clock: Clock;
  log: Log;
  /** Interval of the check. Default an hour. */
  everyMs?: number;
  /** Delay of the first check after the start. Default a minute. */
  firstMs?: number;
}

export interface EndingModel {
  id: string;
  shutdownAt: number;
}

const daySeconds = 86_400;
export const unusedDays = 90;
/** Maximum rotations of one check, so that a new schedule of an account does not send thousands of notifications. */
const maxRotations = 100;
/** Days before a key's expiry at which a notification is sent, the shortest first. */
export const expiringDays = [1, 7] as const;
/** Days before the end of a model at which a notification is sent, the shortest first. */
export const shutdownDays = [1, 7, 30] as const;
/** Days within which a key must have used a model. */
const usedDays = 30;

export class KeyWatch {
  readonly #options: KeyWatchOptions;
  readonly #rounds: PeriodicJob;
  readonly #first: ReturnType<typeof setTimeout>;

  constructor(options: KeyWatchOptions) {
    this.#options = options;
    const { log, everyMs = 3_600_000, firstMs = 60_000 } = options;
    this.#rounds = new PeriodicJob(() => this.#check(), { everyMs, name: "keys_not_watched", log });
    this.#first = setTimeout(() => void this.#rounds.round(), firstMs);
    this.#first.unref();
  }

  check(): Promise<void> {
    return this.#rounds.round();
  }

  close(): Promise<void> {
    clearTimeout(this.#first);
    return this.#rounds.close();
  }

  async #shutdowns(keys: readonly SurveyedKey[], ending: ReadonlyMap<string, number>, now: number): Promise<Tidings[]> {
    const soon = [...ending].filter(([, end]) => end > now && end - now <= shutdownDays[2] * daySeconds);
    const since = now - usedDays * daySeconds;
    const used = new Map(keys.filter(({ lastUsedAt }) => (lastUsedAt ?? 0) >= since).map((key) => [key.id, key]));
    const found = await this.#options.survey.users(
      [...used.keys()],
      soon.map(([id]) => id),
      since,
    );
    return found.flatMap(({ keyId, model }) => {
      const key = used.get(keyId);
      return (key && shutdown(key, model, ending.get(model) ?? 0, now)) ?? [];
    });
  }

  async #check(): Promise<void> {
    const { survey, rotations, clock, teller, isFirst, endingModels } = this.#options;
    if (!isFirst()) return;
    const ending = new Map(endingModels().map((model) => [model.id, model.shutdownAt]));
    let begun = 0;
    for (let after: string | undefined = ""; after !== undefined && !this.#rounds.isClosed; ) {
      const now = clock.nowSeconds();
      const page: Awaited<ReturnType<KeySurvey["page"]>> = await survey.page(after, now);
      for (const key of page.keys) {
        const rotation = begun < maxRotations ? rotationDue(key, now) : undefined;
        for (const tidings of [expiring(key, now), unused(key, now)]) if (tidings) await teller.notify(tidings);
        // A rotation ends a key only after the owners were notified. If the notification could not be stored, the next
        // check tries again.
        if (!rotation || !(await teller.notify(rotation))) continue;
        if (await rotations.begin(key.id, rotation.data.ends_at, rotationEvent(rotation, now))) begun++;
      }
      for (const tidings of await this.#shutdowns(page.keys, ending, now)) await teller.notify(tidings);
      after = page.next;
      await new Promise(setImmediate);
    }
  }
}

/** Returns the report of a model that a key used, or undefined unless the model ends soon. */
function shutdown(
  { accountId, environment }: SurveyedKey,
  model: string,
  end: number,
  now: number,
): Tidings | undefined {
  const days = shutdownDays.find((some) => end - now <= some * daySeconds);
  if (days === undefined || end <= now) return undefined;
  const date = new Date(end * 1000).toISOString().slice(0, 10);
  const once = `model.shutdown ${accountId} ${environment} ${model} ${date} ${days}`;
  return { type: "model.shutdown", accountId, environment, once, data: { model, shutdown_date: date, days } };
}

/** Returns the report of a key that expires soon. Keys with a short lifetime are not reported. */
function expiring(
  { id, accountId, name, environment, createdAt, expiresAt }: SurveyedKey,
  now: number,
): Tidings | undefined {
  if (expiresAt === null) return undefined;
  const days = expiringDays.find((some) => expiresAt - now <= some * daySeconds);
  if (days === undefined || expiresAt - createdAt < 2 * days * daySeconds) return undefined;
  const once = `key.expiring ${id} ${expiresAt} ${days}`;
  const data = { key_id: id, name, environment, expires_at: expiresAt, days };
  return { type: "key.expiring", accountId, environment, once, data };
}

/** Returns the report of a key whose rotation is due. The schedule never prolongs the life of a key. */
function rotationDue(
  { id, accountId, name, environment, createdAt, everyDays, overlapSeconds }: SurveyedKey,
  now: number,
): Extract<Tidings, { type: "key.rotation_due" }> | undefined {
  if (everyDays === null || overlapSeconds === null || now < createdAt + everyDays * daySeconds) return undefined;
  const data = { key_id: id, name, environment, ends_at: now + overlapSeconds, every_days: everyDays };
  return { type: "key.rotation_due", accountId, environment, once: `key.rotation_due ${id} ${data.ends_at}`, data };
}

function rotationEvent({ accountId, data }: NonNullable<ReturnType<typeof rotationDue>>, now: number): AuditEvent {
  const { key_id: targetId, name, ends_at: endsAt } = data;
  return {
    ...{ id: `audit_${Bun.randomUUIDv7()}`, at: now, action: "key.rotation_due", actor: { type: "system" } },
    ...{ accountId, targetId, clientAddress: null, requestId: null, detail: { name, ends_at: endsAt } },
  };
}

function unused(
  { id, accountId, name, environment, createdAt, lastUsedAt }: SurveyedKey,
  now: number,
): Tidings | undefined {
  const since = lastUsedAt ?? createdAt;
  if (now - since < unusedDays * daySeconds) return undefined;
  const data = { key_id: id, name, environment, created_at: createdAt, last_used_at: lastUsedAt, days: unusedDays };
  return { type: "key.unused", accountId, environment, once: `key.unused ${id} ${since}`, data };
}
