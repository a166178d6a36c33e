// Ends a realtime session that is too old or silent for too long, or whose credential is no longer valid.
import type { Clock } from "../../base/clock.ts";
import type { GatewayError } from "../../base/errors.ts";
import { longLived } from "../../base/long-lived.ts";

/** Time limits of a session. `lingerMs` is how long the session waits for the usage of a cancelled response. */
export const realtimeTimes = {
  maxMs: longLived.realtimeSession.maxMs,
  idleMs: longLived.realtimeSession.idleMs,
  credentialMs: 400,
  lingerMs: 3_000,
};
export type RealtimeTimes = Readonly<Record<keyof typeof realtimeTimes, number>>;

const maxIdlePollMs = 15_000;
/** Error codes that end a session. The error of a database that is briefly unavailable does not. */
const endsSession: ReadonlySet<string> = new Set([
  ...["invalid_api_key", "token_expired", "insufficient_scope"],
  ...["model_not_found", "permission_denied"],
]);

export interface SessionWatchOptions {
  clock: Pick<Clock, "monotonicMs">;
  times: RealtimeTimes;
  /** Resolves if the credential still permits the session. Rejects otherwise. */
  holds(): Promise<void>;
  toGatewayError(thrown: unknown): GatewayError;
  /** Ends the session. `message` tells the client why. */
  expired(message: string): void;
  credentialEnded(error: GatewayError): void;
}

export class SessionWatch {
  readonly #options: SessionWatchOptions;
  readonly #timers: ReturnType<typeof setTimeout>[];
  #spokenMs: number;
  #asking = false;
  #stopped = false;

  constructor(options: SessionWatchOptions) {
    this.#options = options;
    this.#spokenMs = options.clock.monotonicMs();
    const { maxMs, idleMs, credentialMs } = options.times;
    this.#timers = [
      setTimeout(() => this.#tooOld(), maxMs),
      setInterval(() => this.#checkSilence(), Math.min(idleMs, maxIdlePollMs)),
      setInterval(() => void this.#checkCredential(), credentialMs),
    ];
  }

  /** Called when the client or the server has sent something. */
  spoken(): void {
    this.#spokenMs = this.#options.clock.monotonicMs();
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #tooOld(): void {
    const minutes = Math.round(this.#options.times.maxMs / 60_000);
    this.#options.expired(`The session is ${minutes} minutes old, the most that it may be. Open another one.`);
  }

  #checkSilence(): void {
    const { clock, times, expired } = this.#options;
    if (clock.monotonicMs() - this.#spokenMs < times.idleMs) return;
    expired(`Nobody has said anything for ${Math.round(times.idleMs / 60_000)} minutes. Open another session.`);
  }

  async #checkCredential(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      await this.#options.holds();
    } catch (thrown) {
      const error = this.#options.toGatewayError(thrown);
      if (endsSession.has(error.code) && !this.#stopped) this.#options.credentialEnded(error);
    } finally {
      this.#asking = false;
    }
  }
}
