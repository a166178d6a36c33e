// Turns the credentials of a request into a principal, or refuses with one message that tells an attacker nothing.
import { parseApiKey } from "../domain/api-key.ts";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { ApiKeyRecord, KeyStore, Principal } from "../domain/principal.ts";
import { keyDigest } from "./key-digest.ts";

/** What a request presents. */
export interface PresentedCredentials {
  /** Value of `Authorization`. */
  authorization: string | null;
  /** Value of `X-API-Key`. */
  apiKey: string | null;
  /** Whether peer and Host are loopback and no proxy header is present; only asked for development keys. */
  isLocal(): boolean;
}

export interface AuthenticatorOptions {
  keys: KeyStore;
  pepper: Uint8Array;
  /** Development keys work in development mode only, and only for local requests. */
  mode: "development" | "production";
  clock: Clock;
}

/** A cached record is trusted this long before the store is asked again. */
const cacheMs = 1_000;
const cacheSize = 10_000;

interface CacheEntry {
  record: ApiKeyRecord;
  principal: Principal;
  readAtMs: number;
}

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #cache = new Map<string, CacheEntry>();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** Throws `invalid_api_key`; the reason is in `detail`, for the log alone. */
  async authenticate(presented: PresentedCredentials): Promise<Principal> {
    const key = presentedKey(presented);
    const environment = parseApiKey(key);
    if (environment === undefined) throw refused("malformed");
    if (environment === "dev" && (this.#options.mode !== "development" || !presented.isLocal())) {
      throw refused(this.#options.mode === "development" ? "dev_key_not_local" : "dev_key_in_production");
    }
    const { record, principal } = await this.#find(keyDigest(key, this.#options.pepper));
    if (record.revokedAt !== null) throw refused("revoked");
    if (record.expiresAt !== null && record.expiresAt <= this.#options.clock.nowSeconds()) throw refused("expired");
    return principal;
  }

  async #find(digest: string): Promise<CacheEntry> {
    const now = this.#options.clock.monotonicMs();
    const cached = this.#cache.get(digest);
    if (cached && now - cached.readAtMs < cacheMs) return cached;
    const record = await this.#options.keys.findKeyByDigest(digest);
    this.#cache.delete(digest);
    // Unknown digests are not remembered: made-up keys must not push real ones out.
    if (!record) throw refused("unknown");
    const principal: Principal = {
      accountId: record.accountId,
      keyId: record.id,
      environment: record.environment,
      scopes: new Set(record.scopes),
    };
    const entry = { record, principal, readAtMs: now };
    if (this.#cache.size >= cacheSize) {
      const oldest = this.#cache.keys().next().value;
      if (oldest !== undefined) this.#cache.delete(oldest);
    }
    this.#cache.set(digest, entry);
    return entry;
  }
}

function presentedKey({ authorization, apiKey: header }: PresentedCredentials): string {
  const apiKey = header === "" ? null : header;
  let bearer: string | undefined;
  if (authorization !== null) {
    bearer = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (bearer === undefined) throw refused("authorization_not_bearer");
  }
  if (apiKey !== null && bearer !== undefined && apiKey !== bearer) throw refused("two_credentials");
  const key = bearer ?? apiKey;
  if (key === null) throw refused("missing");
  return key;
}

function refused(reason: string): GatewayError {
  return new GatewayError("invalid_api_key", "Invalid API key provided", { detail: reason });
}
