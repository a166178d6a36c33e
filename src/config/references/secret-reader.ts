// Reads referenced secrets, and reads them again: a file after its change, a secret of Vault after some minutes.
import type { Clock } from "../../base/clock.ts";
import type { Env } from "../formats.ts";
import { markOf, readSecretFile } from "./secret-file.ts";
import type { SecretRead, SecretState } from "./secret-state.ts";
import type { Vault } from "./vault.ts";

interface Held {
  read: SecretRead;
  /** The previous value. Running requests may still use it, so it is redacted too. */
  before: string | undefined;
  readMs: number;
  failure: string | undefined;
  /** The version of the file (see `markOf`) that was read. `seen` is the version at the last poll. */
  mark: string | undefined;
  seen: string | undefined;
  /** The time of the next read of a secret in Vault. */
  dueMs: number;
  failures: number;
}

/**
 * Milliseconds for which a value of Vault is used. The time varies at random by up to a tenth, so that replicas do not
 * all read at once.
 */
const refreshMs = 300_000;
const spread = 0.1;
const firstRetryMs = 5_000;
const maxRetryMs = 60_000;

export class SecretReader {
  readonly #env: Env;
  readonly #clock: Clock;
  readonly #held = new Map<string, Held>();
  #vault: Promise<Vault> | undefined;
  #openedVault: Vault | undefined;
  #polling: Promise<{ changed: Set<string>; turned: SecretState[] }> | undefined;

  constructor({ env, clock }: { env: Env; clock: Clock }) {
    this.#env = env;
    this.#clock = clock;
  }

  async resolve(names: readonly string[]): Promise<void> {
    const unread = names.filter((name) => !this.#held.get(name)?.read.ok);
    await Promise.all(unread.map(async (name) => this.#held.set(name, await this.#read(name))));
  }

  get(name: string): SecretRead | undefined {
    return this.#held.get(name)?.read;
  }

  retain(names: ReadonlySet<string>): void {
    for (const name of this.#held.keys()) if (!names.has(name)) this.#held.delete(name);
  }

  /**
   * Runs one poll at a time. Only the call that began a poll gets its changes, so that each change is handled once.
   * Another call during a poll returns no changes. With `now`, it waits and then polls again.
   */
  async poll(now: boolean): Promise<{ changed: Set<string>; turned: SecretState[] }> {
    if (this.#polling && !now) return { changed: new Set(), turned: [] };
    while (this.#polling) await this.#polling;
    this.#polling = this.#pollOnce(now).finally(() => {
      this.#polling = undefined;
    });
    return await this.#polling;
  }

  async #pollOnce(now: boolean) {
    const changed = new Set<string>();
    const turned: SecretState[] = [];
    await this.#openedVault?.keepAlive();
    const due = [...this.#held].filter(([name, held]) => now || this.#isDue(name, held));
    await Promise.all(
      due.map(async ([name, { read, failure }]) => {
        const held = await this.#read(name);
        // A reload may have ended the use of the secret meanwhile.
        if (!this.#held.has(name)) return;
        this.#held.set(name, held);
        if (held.read.ok && (!read.ok || held.read.value !== read.value)) changed.add(name);
        if ((held.failure === undefined) !== (failure === undefined)) turned.push(this.#stateOf(name, held));
      }),
    );
    return { changed, turned };
  }

  get states(): SecretState[] {
    return [...this.#held].map(([name, held]) => this.#stateOf(name, held));
  }

  get values(): string[] {
    const held = [...this.#held.values()];
    return [
      ...held.flatMap(({ read, before }) => [read.ok ? read.value : undefined, before]),
      ...(this.#openedVault?.secrets ?? []),
    ]
      .filter((value) => value !== undefined)
      .flatMap((value) => [value, ...value.split("\n")]);
  }

  #stateOf(name: string, { readMs, failure }: Held): SecretState {
    const ageSeconds = Math.max(0, Math.round((this.#clock.monotonicMs() - readMs) / 1000));
    return { name, ageSeconds: name.startsWith("file:") && failure === undefined ? 0 : ageSeconds, failure };
  }

  /** A file is read once two polls in a row see the same change, as its writer may not have finished. */
  #isDue(name: string, held: Held): boolean {
    if (!name.startsWith("file:")) return this.#clock.monotonicMs() >= held.dueMs;
    const mark = markOf(name.slice("file:".length));
    const isComplete = mark === held.seen;
    held.seen = mark;
    return isComplete && mark !== held.mark;
  }

  async #read(name: string): Promise<Held> {
    const isFile = name.startsWith("file:");
    const path = name.slice("file:".length);
    // The mark is taken before the read: a later change is then seen by the next poll.
    const mark = isFile ? markOf(path) : undefined;
    const read = await (isFile ? readSecretFile(path) : this.#readVault(name.slice("vault:".length)));
    const nowMs = this.#clock.monotonicMs();
    const held = this.#held.get(name);
    const kept = held?.read.ok ? held.read : undefined;
    const isChanged = kept !== undefined && read.ok && read.value !== kept.value;
    const failures = read.ok ? 0 : (held?.failures ?? 0) + 1;
    const waitMs = read.ok
      ? refreshMs * (1 - spread + 2 * spread * Math.random())
      : Math.min(firstRetryMs * 2 ** (failures - 1), maxRetryMs);
    return {
      read: read.ok ? read : (kept ?? read),
      before: isChanged ? kept.value : held?.before,
      readMs: read.ok ? nowMs : (held?.readMs ?? nowMs),
      failure: read.ok ? undefined : read.message,
      ...{ mark, seen: mark, dueMs: nowMs + waitMs, failures },
    };
  }

  async #readVault(target: string): Promise<SecretRead> {
    this.#vault ??= import("./vault.ts").then(({ Vault }) => new Vault({ env: this.#env, clock: this.#clock }));
    this.#openedVault = await this.#vault;
    return await this.#openedVault.read(target);
  }
}
