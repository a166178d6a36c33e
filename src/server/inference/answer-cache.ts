// Composes the response cache: its store, the lookup, and clearing.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Config } from "../../config/config.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import { currentKey } from "../../domain/key-ring.ts";
import { maxCacheSeconds } from "../../domain/models/policies/policy-text.ts";
import { AnswerCache } from "../../inference/cache/answer-cache.ts";
import { KeptAnswers } from "../../inference/cache/kept-answers.ts";
import { MemoryAnswers } from "../../inference/cache/memory-answers.ts";
import { SimilarRequests } from "../../inference/cache/similar-requests.ts";
import type { OwnCalls } from "../../inference/own-calls.ts";
import { RedisAnswers } from "../../storage/redis/redis-answers.ts";
import type { Governance } from "../governance.ts";
import type { Opened } from "../opened.ts";
import { replySeals } from "../reply-seals.ts";

/** Vectors may use this share of the cache's memory limit, in addition to the limit itself. */
const partOfVectors = 1 / 4;

export interface AnswerCacheOptions {
  config: Config;
  governance: Pick<Governance, "keyFor" | "audit" | "pseudonymKey">;
  feed: ChangeFeed;
  ownCalls: OwnCalls;
  clock: Clock;
  log: Log;
  opened: Opened;
}

export async function openAnswerCache(options: AnswerCacheOptions) {
  const { config, governance, feed, ownCalls, clock, log, opened } = options;
  const sealFor = replySeals(governance.keyFor("answer-seal-v1"), governance.pseudonymKey);
  const store = opened.add(
    config.cache.store === "redis" && config.redisUrl !== undefined
      ? await RedisAnswers.open({ url: config.redisUrl, log, sealFor, maxSeconds: maxCacheSeconds })
      : new MemoryAnswers({ clock, maxBytes: config.cache.maxBytes }),
  );
  const maxBytes = Math.floor(config.cache.maxBytes * partOfVectors);
  const similar = opened.add(new SimilarRequests({ ownCalls, clock, maxBytes }));
  feed.onChange("answers", (accountIds: readonly (string | undefined)[] = [undefined]) => {
    for (const accountId of accountIds) {
      similar.forget(accountId);
      // After a change in another process, all answers of the account are cleared here. These may be more answers than
      // necessary, but they are only computed again. The other process has cleared shared stores.
      if (store instanceof MemoryAnswers) void store.forget({ accountId });
    }
  });
  const keptAnswers = new KeptAnswers({ store, similar, feed, audit: governance.audit });
  const key = currentKey(governance.keyFor("answer-digest-v1"));
  const answerCache = new AnswerCache({ store, similar, clock, key, maxAnswerBytes: config.cache.maxAnswerBytes });
  return { answerCache, keptAnswers };
}
