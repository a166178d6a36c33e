// Finds the tags of a request, in its keys, its header and its body.
import type { Clock } from "../base/clock.ts";
import { fieldError } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import { maskKeys } from "../domain/api-key.ts";
import { budgetOf, endUserTag, isEndUserTag, otherEndUsers } from "../domain/end-users.ts";
import type { Principal } from "../domain/principal.ts";
import {
  isTag,
  maxRequestTagLength,
  maxRequestTags,
  otherTag,
  type TagSettings,
  tagHeader,
} from "../domain/usage/request-tags.ts";

/** The members of a body that tags are read from. */
export interface SaidOfRequest {
  /** The end user that the request names, if any. */
  readonly endUser: string | undefined;
  /** `metadata` of the request, if it is an object. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

export interface RequestTagsOptions {
  /** Called for every request, because a reload may change the settings. */
  settings(): TagSettings;
  clock: Pick<Clock, "nowSeconds">;
}

/** Maximum remembered tags of all accounts together, which take a few tens of megabytes. */
const maxRemembered = 200_000;
const daySeconds = 86_400;

export class RequestTags {
  readonly #options: RequestTagsOptions;
  /** Tags that were used today, by account and environment. */
  readonly #used = new Map<string, Set<string>>();
  #remembered = 0;
  #day = 0;

  constructor(options: RequestTagsOptions) {
    this.#options = options;
  }

  /**
   * Returns the tags without duplicates, beginning with those of the keys, which always stay; undefined if there are
   * none. `header` is the header as sent. Throws `invalid_request` if the header is wrong. A value of the body that
   * is no valid tag counts as `name:other`, because the client did not mean it as a tag.
   */
  of(principal: Principal, header: string | null, said: SaidOfRequest): readonly string[] | undefined {
    const { metadata, user } = this.#options.settings();
    const own = principal.tags;
    const { endUsers } = principal.account;
    if (header === null && metadata.length === 0 && !user && endUsers === undefined) return own;
    const brought = header === null ? [] : tagsIn(header);
    if (metadata.length > 0) addMetadata(brought, said.metadata, metadata);
    if (endUsers === undefined) {
      if (user) addNamed(brought, "user", said.endUser);
    } else if (said.endUser) {
      const tag = endUserTag(said.endUser);
      // If the operator has not made users tags, an end user becomes a tag only if a budget applies to the end user.
      if (user || budgetOf(endUsers, tag)) brought.push(tag);
    }
    if (brought.length === 0) return own;
    const tags = new Set(own);
    for (const tag of brought) if (!tags.has(tag)) tags.add(this.#counted(principal, tag));
    return [...tags];
  }

  /**
   * Returns the tag that the request is counted under: the tag itself, or a substitute if there are too many different
   * tags today.
   */
  #counted({ account, environment, limits }: Principal, tag: string): string {
    const { endUsers } = account;
    const isOfQuota = limits.windows?.some(({ filter }) => filter?.tag === tag);
    if (isOfQuota || (endUsers && Object.hasOwn(endUsers.named, tag))) return tag;
    if (this.#isTaken(`${account.id} ${environment}`, tag, this.#options.settings().maxADay)) return tag;
    // Further end users share a tag, which the default budget limits.
    return endUsers?.default && isEndUserTag(tag) ? otherEndUsers : otherTag;
  }

  /**
   * Reports whether the tag may be used: it was used today already, or there is room for a new tag, which is then
   * added.
   */
  #isTaken(owner: string, tag: string, most: number): boolean {
    const day = Math.floor(this.#options.clock.nowSeconds() / daySeconds);
    if (day !== this.#day) {
      this.#used.clear();
      this.#remembered = 0;
      this.#day = day;
    }
    const used = this.#used.get(owner);
    if (used?.has(tag)) return true;
    if ((used?.size ?? 0) >= most || this.#remembered >= maxRemembered) return false;
    if (used) used.add(tag);
    else this.#used.set(owner, new Set([tag]));
    this.#remembered++;
    return true;
  }
}

function tagsIn(header: string): string[] {
  const tags = header
    .split(",")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
  const wrong = tags.find((tag) => !isTag(tag));
  if (wrong !== undefined) {
    throw fieldError(
      tagHeader,
      `must be tags separated by commas, each of 1 to ${maxRequestTagLength} letters, digits and . _ : @ / = + -, beginning with a letter or digit, not with \`asked:\` or \`gateway:\`, and no API key (got ${maskKeys(shown(wrong))}).`,
    );
  }
  const once = [...new Set(tags)];
  if (once.length <= maxRequestTags) return once;
  throw fieldError(tagHeader, `must have at most ${maxRequestTags} tags (got ${once.length}).`);
}

function addMetadata(tags: string[], said: SaidOfRequest["metadata"], names: readonly string[]): void {
  if (!said) return;
  for (const name of names) if (Object.hasOwn(said, name)) addNamed(tags, name, said[name]);
}

/** Adds a tag for a value. Empty values are left out. */
function addNamed(tags: string[], name: string, value: unknown): void {
  if (value === undefined || value === null || value === "") return;
  const tag = typeof value === "object" ? undefined : `${name}:${String(value)}`;
  tags.push(tag !== undefined && isTag(tag) ? tag : `${name}:${otherTag}`);
}
