// The keys that sign access tokens: created, sealed, published, and rotated without a gap.

import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { AuditActor } from "../../domain/audit.ts";
import type { Keys } from "../../domain/key-ring.ts";
import type { SigningKey, SigningKeyStore } from "../../domain/people/signing-key.ts";
import type { Principal } from "../../domain/principal.ts";
import { auditEvent, type Origin } from "../records/audit.ts";
import { seal, unseal } from "./sealing.ts";

export interface SigningKeysOptions {
  store: SigningKeyStore;
  /** Keys of 32 bytes. */
  sealingKey: Keys;
  clock: Clock;
  log: Log;
}

/** A signing key as operators see it. Times in Unix seconds. */
export interface SigningKeyInfo {
  id: string;
  createdAt: number;
  activeAt: number;
  retiresAt: number | null;
  /** Published but not used yet; in use; or only for verification of earlier signatures. */
  state: "upcoming" | "signing" | "verifying";
}

/** Public members of a key (RFC 7517). */
export interface PublishedJwk {
  kty: string;
  crv: string;
  x: string;
  y: string;
  kid: string;
  use: "sig";
  alg: "ES256";
}

interface LoadedKey {
  record: SigningKey;
  publicKey: CryptoKey;
  /** Undefined if the key was sealed under another secret: it then only verifies signatures. */
  privateKey: CryptoKey | undefined;
}

/** Maximum lifetime of a token in seconds. */
export const maxTokenSeconds = 86_400;
/**
 * Seconds between publishing a key and signing with it. By then every process has seen the key, and so have clients
 * that cache the key set (`max-age` 300 s).
 */
const publishSeconds = 600;
/**
 * Seconds that a key stays published after the expiry of its last tokens: a process that missed a change may use the
 * key a little longer.
 */
const slackSeconds = 3_600;
const rotateAfterSeconds = 90 * 86_400;
const reloadMs = 60_000;
/** Minimum milliseconds between two reads of the store that tokens with an unknown `kid` cause. */
const rereadMs = 1_000;
const algorithm = { name: "ECDSA", namedCurve: "P-256" } as const;

export class SigningKeys {
  readonly #options: SigningKeysOptions;
  #keys: readonly LoadedKey[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;
  #rereadMs = Number.NEGATIVE_INFINITY;
  #rereading: Promise<void> | undefined;
  #failure: unknown;
  /** Number of reads that have begun. An overtaken read must not bring back an ended key. */
  #readsBegun = 0;
  #newestRead = 0;
  /** Called when a key ended, so that caches drop what the key signed. */
  onEnded: (() => void) | undefined;

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  /** Creates the first key if there is none. */
  async start(): Promise<void> {
    await this.#reload();
    if (!this.#signer()) await this.#add(this.#newest(), 0, systemActor, this.#ownOrigin());
    this.#timer = setInterval(() => void this.maintain(), reloadMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Applies changes of other processes, and adds the next key when the newest is 90 days old. Runs once a minute. */
  async maintain(): Promise<void> {
    try {
      await this.#reload();
      const newest = this.#newest();
      if (newest && newest.record.activeAt + rotateAfterSeconds > this.#now()) return;
      await this.#add(newest, newest ? publishSeconds : 0, systemActor, this.#ownOrigin());
    } catch (error) {
      this.#options.log.warn("signing_keys_not_renewed", { detail: String(error) });
    }
  }

  /**
   * Creates a key that signs ten minutes from now. If a key is already upcoming, returns that key, because another
   * would sign no sooner.
   */
  async rotate(by: Principal | AuditActor, origin: Origin): Promise<SigningKeyInfo> {
    await this.#reload();
    let newest = this.#newest();
    if (!newest || newest.record.activeAt <= this.#now()) {
      await this.#add(newest, publishSeconds, by, origin);
      newest = this.#newest();
    }
    const info = this.list().find(({ id }) => id === newest?.record.id);
    if (!info) throw new GatewayError("service_unavailable", "The signing keys cannot be read; try again in a moment.");
    return info;
  }

  /**
   * Replaces keys that may be compromised: a new key signs immediately. When the promise resolves, this process
   * refuses all earlier signatures; other processes follow as soon as they notice the change of credentials.
   */
  async replace(by: Principal | AuditActor, origin: Origin): Promise<SigningKeyInfo> {
    const { store } = this.#options;
    const now = this.#now();
    const key = await this.#newKey(now);
    const ended = (id: string) =>
      auditEvent("signing_key.retired", by, origin, {
        ...{ accountId: null, targetId: id, detail: { retires_at: now, revoked: true } },
      });
    const created = auditEvent("signing_key.created", by, origin, {
      ...{ accountId: null, targetId: key.id, detail: { active_at: now } },
    });
    await store
      .replaceSigningKeys(key, now, (ids) => [created, ...ids.map(ended)])
      .catch((error) => {
        throw unavailable(`signing_keys: ${String(error)}`, error);
      });
    await this.#reload();
    const info = this.list().find(({ id }) => id === key.id);
    if (!info) throw unavailable("replaced_meanwhile");
    return info;
  }

  /** Reads the keys again. Call after a change, because keys may have ended. Rejects if the keys cannot be read. */
  async refresh(): Promise<void> {
    await this.#reload();
  }

  /** Reports whether signatures by this key are accepted, as far as this process knows. */
  isPublished(id: string): boolean {
    return this.#published().some(({ record }) => record.id === id);
  }

  async signer(): Promise<{ id: string; privateKey: CryptoKey }> {
    let signer = this.#signer();
    if (!signer) {
      // No key in memory can sign: all are sealed under another secret, or missing from the store.
      await this.#reload();
      if (!this.#signer()) await this.#add(this.#newest(), 0, systemActor, this.#ownOrigin());
      signer = this.#signer();
    }
    if (!signer?.privateKey) throw unavailable("no_signing_key");
    return { id: signer.record.id, privateKey: signer.privateKey };
  }

  /**
   * Returns the verification key; undefined if it does not exist. Throws `service_unavailable` if the store cannot be
   * asked.
   */
  async verifier(id: string): Promise<CryptoKey | undefined> {
    const known = this.#published().find(({ record }) => record.id === id);
    if (known) return known.publicKey;
    await this.#reread();
    const found = this.#published().find(({ record }) => record.id === id);
    if (!found && this.#failure !== undefined) throw unavailable(`signing_keys: ${String(this.#failure)}`);
    return found?.publicKey;
  }

  jwks(): { keys: PublishedJwk[] } {
    const keys = this.#published().map(({ record: { id, publicJwk } }) => ({
      kty: String(publicJwk["kty"]),
      crv: String(publicJwk["crv"]),
      x: String(publicJwk["x"]),
      y: String(publicJwk["y"]),
      kid: id,
      use: "sig" as const,
      alg: "ES256" as const,
    }));
    return { keys };
  }

  /** Lists the keys, oldest first. */
  list(): SigningKeyInfo[] {
    const signing = this.#signer()?.record.id;
    return this.#published().map(({ record: { id, createdAt, activeAt, retiresAt } }) => {
      const upcoming = activeAt > this.#now() ? "upcoming" : "verifying";
      return { id, createdAt, activeAt, retiresAt, state: id === signing ? "signing" : upcoming };
    });
  }

  #now(): number {
    return this.#options.clock.nowSeconds();
  }

  #ownOrigin(): Origin {
    return { nowSeconds: this.#now(), clientAddress: null, requestId: null };
  }

  #published(): LoadedKey[] {
    const now = this.#now();
    return this.#keys.filter(({ record }) => record.retiresAt === null || record.retiresAt > now);
  }

  #newest(): LoadedKey | undefined {
    return this.#keys.find(({ record }) => record.retiresAt === null);
  }

  /**
   * Returns the key to sign with: of the keys that stay published long enough for a token signed now, the one that
   * became active last. If none is active, as after a clock was set back, returns the next one.
   */
  #signer(): LoadedKey | undefined {
    const now = this.#now();
    const able = this.#keys
      .filter(({ privateKey, record: { retiresAt } }) => privateKey && (retiresAt ?? Infinity) - now > maxTokenSeconds)
      .sort((a, b) => a.record.activeAt - b.record.activeAt);
    return able.findLast(({ record }) => record.activeAt <= now) ?? able[0];
  }

  /** Reads the store, unless it was read a moment ago. Never rejects. */
  #reread(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#rereading) return this.#rereading;
    if (nowMs - this.#rereadMs < rereadMs) return Promise.resolve();
    this.#rereading = this.#reload()
      // The known keys stay in use. The next read comes soon.
      .catch(() => {})
      .finally(() => {
        this.#rereading = undefined;
      });
    return this.#rereading;
  }

  async #reload(): Promise<void> {
    this.#rereadMs = this.#options.clock.monotonicMs();
    const read = ++this.#readsBegun;
    try {
      const records = await this.#options.store.listSigningKeys(this.#now());
      const keys = await Promise.all(records.map((record) => this.#load(record)));
      if (read < this.#newestRead) return;
      this.#newestRead = read;
      const before = this.#published();
      this.#keys = keys;
      this.#failure = undefined;
      if (before.some(({ record }) => !this.isPublished(record.id))) this.onEnded?.();
    } catch (error) {
      this.#failure = error;
      throw unavailable(`signing_keys: ${String(error)}`, error);
    }
  }

  async #load(record: SigningKey): Promise<LoadedKey> {
    const known = this.#keys.find((key) => key.record.id === record.id);
    if (known) return { ...known, record };
    const publicKey = await crypto.subtle.importKey("jwk", record.publicJwk, algorithm, true, ["verify"]);
    let privateKey: CryptoKey | undefined;
    try {
      const jwk = JSON.parse(unseal(record.sealedPrivateJwk, this.#options.sealingKey, record.id)) as JsonWebKey;
      privateKey = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["sign"]);
    } catch (error) {
      this.#options.log.error("signing_key_unreadable", { key: record.id, detail: String(error) });
    }
    return { record, publicKey, privateKey };
  }

  async #newKey(activeAt: number): Promise<SigningKey> {
    const pair = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey);
    const privateJwk = await crypto.subtle.exportKey("jwk", pair.privateKey);
    const id = `sig_${Bun.randomUUIDv7()}`;
    const sealedPrivateJwk = seal(JSON.stringify(privateJwk), this.#options.sealingKey, id);
    return { id, publicJwk: { kty, crv, x, y }, sealedPrivateJwk, createdAt: this.#now(), activeAt, retiresAt: null };
  }

  /** Adds a key. If another process added a key first, that key is used. */
  async #add(
    predecessor: LoadedKey | undefined,
    publishedForSeconds: number,
    by: Principal | AuditActor,
    origin: Origin,
  ): Promise<void> {
    const { store } = this.#options;
    const activeAt = this.#now() + publishedForSeconds;
    const key = await this.#newKey(activeAt);
    const { id } = key;
    const retiring = predecessor && { id: predecessor.record.id, retiresAt: activeAt + maxTokenSeconds + slackSeconds };
    const events = [
      auditEvent("signing_key.created", by, origin, { accountId: null, targetId: id, detail: { active_at: activeAt } }),
    ];
    if (retiring) {
      const detail = { retires_at: retiring.retiresAt };
      events.push(auditEvent("signing_key.retired", by, origin, { accountId: null, targetId: retiring.id, detail }));
    }
    await store.addSigningKey(key, retiring, events).catch((error) => {
      throw error instanceof GatewayError ? error : unavailable(`signing_keys: ${String(error)}`, error);
    });
    await this.#reload();
  }
}

const systemActor: AuditActor = { type: "system" };

function unavailable(detail: string, cause?: unknown): GatewayError {
  return new GatewayError("service_unavailable", "The signing keys cannot be read; try again in a moment.", {
    detail,
    retryAfterSeconds: 1,
    cause,
  });
}
