// Tags of requests: what usage is counted under beside key, app and model, and how many of them there may be.
import { maskKeys } from "../api-key.ts";
import { givenTagPattern } from "../key-tags.ts";

/** The header in which a client names tags of its request. */
export const tagHeader = "x-headrace-tags";
/** Tags that a request may bring beside those of its keys. */
export const maxRequestTags = 10;
/** Longer than those of keys: `user:` stands before what often is 64 hexadecimal digits. */
export const maxRequestTagLength = 128;
/** Members of `metadata` that become tags. */
export const maxMetadataTags = 4;
export const metadataNamePattern = /^(?!(?:asked|gateway)$)[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
/** Stands for every further one where an account has used very many in a day. */
export const otherTag = "other";

/**
 * Whether a client may give it. A whole API key is none, whoever sent it by mistake: tags are kept, and shown to all of the
 * account.
 */
export function isTag(text: string): boolean {
  return text.length <= maxRequestTagLength && givenTagPattern.test(text) && maskKeys(text) === text;
}

/** What the operator wants to be made of members of a request. */
export interface TagSettings {
  /** Members of `metadata` that become `name:value`. */
  readonly metadata: readonly string[];
  /** Whether the end user that a request names becomes `user:name`. */
  readonly user: boolean;
  /** Tags that an account may have in an environment in a day, beside those of its keys and quotas. */
  readonly maxADay: number;
}
