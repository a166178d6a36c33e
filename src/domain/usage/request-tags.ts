// Tags of requests, under which usage is counted besides key, app and model, and their bounds.
import { maskKeys } from "../api-key.ts";
import { givenTagPattern } from "../key-tags.ts";

/** The header in which a client names tags of its request. */
export const tagHeader = "x-headrace-tags";
/** Maximum number of tags that a request may add to those of its keys. */
export const maxRequestTags = 10;
/** Longer than tags of keys, because `user:` often precedes 64 hexadecimal digits. */
export const maxRequestTagLength = 128;
/** Maximum number of `metadata` members that become tags. */
export const maxMetadataTags = 4;
export const metadataNamePattern = /^(?!(?:asked|gateway)$)[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
/** The tag that replaces every further tag after an account has used very many in a day. */
export const otherTag = "other";

/**
 * Reports whether a client may use the text as a tag. An API key is refused, because tags are stored and shown to the
 * whole account.
 */
export function isTag(text: string): boolean {
  return text.length <= maxRequestTagLength && givenTagPattern.test(text) && maskKeys(text) === text;
}

/** The members of requests that become tags, as the operator configured. */
export interface TagSettings {
  /** Members of `metadata` that become `name:value`. */
  readonly metadata: readonly string[];
  /** True if the end user that a request names becomes the tag `user:name`. */
  readonly user: boolean;
  /** Maximum number of tags of an account in an environment in a day, besides those of its keys and quotas. */
  readonly maxADay: number;
}
