// Tags of requests. Usage is counted by tag, in addition to key, app and model.
import { maskKeys } from "../api-key.ts";
import { givenTagPattern } from "../key-tags.ts";

/** The header in which a client names tags of its request. */
export const tagHeader = "x-headrace-tags";
/** Maximum number of tags that a request may add to those of its keys. */
export const maxRequestTags = 10;
/**
 * Maximum length of a request's tag. Longer than a key's tag may be, because `user:` is often followed by 64
 * hexadecimal digits.
 */
export const maxRequestTagLength = 128;
/** Maximum number of `metadata` members that become tags. */
export const maxMetadataTags = 4;
export const metadataNamePattern = /^(?!(?:asked|gateway)$)[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
/** The tag that replaces a new tag once an account has used too many different tags in a day. */
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
  /** Names of `metadata` members that become tags such as `name:value`. */
  readonly metadata: readonly string[];
  /** True if the end user that a request names becomes a tag such as `user:name`. */
  readonly user: boolean;
  /** Maximum number of different tags of an account and environment in a day. Tags of keys and quotas do not count. */
  readonly maxADay: number;
}
