// A key in memory: its ids, and a reference to the data that many keys share.
import type { ChainKey } from "../../domain/principal.ts";

/** The data that keys of one account usually have in common. */
export type KeyTerms = Omit<ChainKey, "id" | "limitId">;

export class KeptKey implements ChainKey {
  readonly id: string;
  readonly limitId: string;
  readonly #terms: KeyTerms;

  constructor(id: string, limitId: string, terms: KeyTerms) {
    this.id = id;
    // Two equal ids share one string object, which saves memory.
    this.limitId = limitId === id ? id : limitId;
    this.#terms = terms;
  }

  get kind() {
    return this.#terms.kind;
  }

  get personId() {
    return this.#terms.personId;
  }

  get appId() {
    return this.#terms.appId;
  }

  get role() {
    return this.#terms.role;
  }

  get seesAllUsage() {
    return this.#terms.seesAllUsage;
  }

  get accountId() {
    return this.#terms.accountId;
  }

  get environment() {
    return this.#terms.environment;
  }

  get scopes() {
    return this.#terms.scopes;
  }

  get parentId() {
    return this.#terms.parentId;
  }

  get expiresAt() {
    return this.#terms.expiresAt;
  }

  get revokedAt() {
    return this.#terms.revokedAt;
  }

  get revoked() {
    return this.#terms.revoked;
  }

  get suspendedBy() {
    return this.#terms.suspendedBy;
  }

  get allowedIps() {
    return this.#terms.allowedIps;
  }

  get rateLimit() {
    return this.#terms.rateLimit;
  }

  get rateLimitWindow() {
    return this.#terms.rateLimitWindow;
  }

  get monthlyTokens() {
    return this.#terms.monthlyTokens;
  }

  get monthlySpend() {
    return this.#terms.monthlySpend;
  }

  get quotas() {
    return this.#terms.quotas;
  }

  get models() {
    return this.#terms.models;
  }

  get tools() {
    return this.#terms.tools;
  }

  get neverLeaves() {
    return this.#terms.neverLeaves;
  }

  get priority() {
    return this.#terms.priority;
  }

  get responseCache() {
    return this.#terms.responseCache;
  }

  get tags() {
    return this.#terms.tags;
  }
}

export function termsOf(key: ChainKey): KeyTerms {
  return {
    kind: key.kind,
    personId: key.personId,
    appId: key.appId,
    role: key.role,
    seesAllUsage: key.seesAllUsage,
    accountId: key.accountId,
    environment: key.environment,
    scopes: key.scopes,
    parentId: key.parentId,
    expiresAt: key.expiresAt,
    revokedAt: key.revokedAt,
    revoked: key.revoked,
    suspendedBy: key.suspendedBy,
    allowedIps: key.allowedIps,
    rateLimit: key.rateLimit,
    rateLimitWindow: key.rateLimitWindow,
    monthlyTokens: key.monthlyTokens,
    monthlySpend: key.monthlySpend,
    quotas: key.quotas,
    models: key.models,
    tools: key.tools,
    neverLeaves: key.neverLeaves,
    priority: key.priority,
    responseCache: key.responseCache,
    tags: key.tags,
  };
}
