// The response cache as operators see it: they clear it for an account, for a model, or as a whole.
import type { AuditLog } from "../../domain/audit.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import type { AnswerStore, ForgottenAnswers } from "../../domain/models/policies/answer-store.ts";
import type { Principal } from "../../domain/principal.ts";
import { auditEvent, type Origin } from "../../policy/records/audit.ts";
import type { SimilarRequests } from "./similar-requests.ts";

export interface KeptAnswersOptions {
  store: Pick<AnswerStore, "forget">;
  similar: Pick<SimilarRequests, "forget">;
  /** Announces changes to the other processes. */
  feed: Pick<ChangeFeed, "announce">;
  audit: Pick<AuditLog, "append">;
}

export class KeptAnswers {
  readonly #options: KeptAnswersOptions;

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  /** Removes cached answers. Rejects if not all of them can be removed now. */
  async forget(principal: Principal, which: ForgottenAnswers, origin: Origin): Promise<void> {
    const { store, similar, feed, audit } = this.#options;
    const { accountId, model } = which;
    const detail = { model: model ?? null };
    // The audit event comes first: a removal without an event could not be traced.
    await audit.append([
      auditEvent("cache.cleared", principal, origin, { accountId: accountId ?? null, targetId: model ?? null, detail }),
    ]);
    // Entries of similar questions do not record their model, so clearing one model clears all entries.
    similar.forget(model === undefined ? accountId : undefined);
    await store.forget(which);
    feed.announce("answers", model === undefined && accountId !== undefined ? [accountId] : undefined);
  }

  /**
   * Removes the answers of accounts that are deleted, or that a person leaves for good, without waiting for their
   * expiry. Never rejects: a store that is away removes them later.
   */
  async forgetAccounts(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const { store, similar, feed } = this.#options;
    for (const id of ids) similar.forget(id);
    await Promise.allSettled(ids.map((accountId) => store.forget({ accountId })));
    feed.announce("answers", ids);
  }
}
