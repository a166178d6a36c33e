// All kept answers at once, as operators see them: they are forgotten, of an account or a model, or all.
import type { AuditLog } from "../../domain/audit.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import type { AnswerStore, ForgottenAnswers } from "../../domain/models/policies/answer-store.ts";
import type { Principal } from "../../domain/principal.ts";
import { auditEvent, type Origin } from "../../policy/records/audit.ts";
import type { SimilarRequests } from "./similar-requests.ts";

export interface KeptAnswersOptions {
  store: Pick<AnswerStore, "forget">;
  similar: Pick<SimilarRequests, "clear">;
  /** For the other processes. */
  feed: Pick<ChangeFeed, "announce">;
  audit: Pick<AuditLog, "append">;
}

export class KeptAnswers {
  readonly #options: KeptAnswersOptions;

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  /** Rejects where not all of them can be forgotten now. */
  async forget(principal: Principal, which: ForgottenAnswers, origin: Origin): Promise<void> {
    const { store, similar, feed, audit } = this.#options;
    const { accountId = null, model } = which;
    const detail = { model: model ?? null };
    // First: what is done without a word of it could not be found out.
    await audit.append([
      auditEvent("cache.cleared", principal, origin, { accountId, targetId: model ?? null, detail }),
    ]);
    similar.clear();
    await store.forget(which);
    feed.announce("answers");
  }
}
