// Replaces digests under an older secret by digests under the current one, in the background.
import type { Log } from "../../base/log.ts";

export interface DigestRenewal {
  table: "api_keys" | "app_secrets";
  id: string;
  from: string;
  to: string;
}

export interface DigestRenewalsOptions {
  /** Writes the renewals, except those whose key record has changed since. */
  write(renewals: readonly DigestRenewal[]): Promise<void>;
  log: Log;
  flushMs?: number;
}

const defaultFlushMs = 1_000;
/** Maximum pending renewals. Further renewals are dropped until the next use of their key. */
const maxPending = 100_000;

export class DigestRenewals {
  readonly #options: DigestRenewalsOptions;
  #pending = new Map<string, DigestRenewal>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: DigestRenewalsOptions) {
    this.#options = options;
  }

  /** `digest` is the key's digest under the current secret. */
  keyFound({ id, digest: from }: { id: string; digest: string }, digest: string): void {
    this.#add({ table: "api_keys", id, from, to: digest });
  }

  appSecretFound({ id, digest: from }: { id: string; digest: string }, digest: string): void {
    this.#add({ table: "app_secrets", id, from, to: digest });
  }

  /** Writes pending renewals. Never rejects: a key whose renewal failed is found again at its next use. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  close(): Promise<void> {
    return this.flush();
  }

  #add(renewal: DigestRenewal): void {
    if (this.#pending.size >= maxPending) return;
    this.#pending.set(renewal.id, renewal);
    this.#timer ??= setTimeout(() => void this.flush(), this.#options.flushMs ?? defaultFlushMs);
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const batch = [...this.#pending.values()];
    this.#pending = new Map();
    try {
      await this.#options.write(batch);
      this.#options.log.info("digests_renewed", { count: batch.length });
    } catch (error) {
      this.#options.log.warn("digests_not_renewed", { count: batch.length, detail: String(error) });
    }
  }
}
