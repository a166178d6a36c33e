// Checks the values of a key in a request as far as the schema cannot, and converts them to the stored form.

import { invalidRequest } from "../../base/errors.ts";
import { formatRange, parseRange } from "../../base/text/ip-range.ts";
import { maskKeys } from "../../domain/api-key.ts";
import { type GivenQuotaRule, type QuotaRule, quotaFault, quotaRuleOf } from "../../domain/limits/quota-rules.ts";
import { defaultWindowSeconds } from "../../domain/limits/rate-limit.ts";

/**
 * Control, format, surrogate and private-use characters and line separators, which could hide or rearrange the content
 * of a table.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;

export function keyName(text: string): string {
  const name = text.trim();
  if (maskKeys(name) !== name) {
    throw invalidRequest("name: holds a whole API key. Names are shown to others; choose another.");
  }
  if (name !== "" && !unprintable.test(name)) return name;
  throw invalidRequest("name: must be 1 to 100 printable characters, not only spaces.");
}

/** Returns the text without spaces around it. Throws `invalid_request` for API keys and unprintable characters. */
export function oneLine(field: string, text: string): string {
  const line = text.trim();
  if (maskKeys(line) !== line) throw invalidRequest(`${field}: holds a whole API key, which others would see.`);
  if (line !== "" && !unprintable.test(line)) return line;
  throw invalidRequest(`${field}: must be one line of printable characters, not only spaces.`);
}

/** Returns normalised addresses without duplicates. */
export function keyAddresses(texts: readonly string[] | null): string[] {
  const addresses = (texts ?? []).map((text, i) => {
    const range = parseRange(text.trim());
    if (range) return formatRange(range);
    throw invalidRequest(
      `allowed_ips[${i}]: must be an IPv4 or IPv6 address, or a range such as 192.0.2.0/24 or 2001:db8::/32.`,
    );
  });
  return [...new Set(addresses)];
}

/** Checks an expiry in Unix seconds. */
export function keyExpiry(expiresAt: number | null, nowSeconds: number): number | null {
  if (expiresAt === null || expiresAt > nowSeconds) return expiresAt;
  throw invalidRequest(`expires_at: must be in the future, in Unix seconds after ${nowSeconds} (got ${expiresAt}).`);
}

/**
 * Checks a limit and its window: a limit always has a window, and only a limit has one. `current` holds the values
 * that the request does not change.
 */
export function keyRate(
  request: { rate_limit?: number | null | undefined; rate_limit_window?: number | null | undefined },
  current: { rateLimit: number | null; rateLimitWindow: number | null } = { rateLimit: null, rateLimitWindow: null },
): { rateLimit: number | null; rateLimitWindow: number | null } {
  const { rate_limit: limit = current.rateLimit, rate_limit_window: given } = request;
  if (limit !== null) {
    const windowSeconds = given === undefined ? current.rateLimitWindow : given;
    return { rateLimit: limit, rateLimitWindow: windowSeconds ?? defaultWindowSeconds };
  }
  if (given === undefined || given === null) return { rateLimit: null, rateLimitWindow: null };
  throw invalidRequest("rate_limit_window: is the window of rate_limit; send rate_limit as well, or leave both out.");
}

/** Checks quotas with a window. Values of the right shape may still be contradictory. */
export function quotaRules(given: readonly GivenQuotaRule[] | null): QuotaRule[] {
  const fault = quotaFault(given ?? []);
  if (fault) throw invalidRequest(`quotas[${fault.at}].${fault.field}: ${fault.must}.`);
  return (given ?? []).map(quotaRuleOf);
}

/** Returns the sorted models without duplicates; null allows all of the environment. */
export function keyModels(given: readonly string[] | null): string[] | null {
  return names("models", given);
}

/** Returns the sorted tools without duplicates; null allows all. */
export function keyTools(given: readonly string[] | null): string[] | null {
  return names("tools", given);
}

function names(field: string, given: readonly string[] | null): string[] | null {
  const at = given?.findIndex((name) => maskKeys(name) !== name || unprintable.test(name)) ?? -1;
  if (at < 0) return given && [...new Set(given)].sort();
  throw invalidRequest(`${field}[${at}]: must be printable characters, and no API key, as it is shown to others.`);
}

/** Returns the sorted tags without duplicates. */
export function keyTags(given: readonly string[] | null): string[] {
  const at = (given ?? []).findIndex((tag) => maskKeys(tag) !== tag);
  if (at < 0) return [...new Set(given)].sort();
  throw invalidRequest(`tags[${at}]: holds a whole API key. Tags are shown to others; choose another.`);
}

/** Returns the trimmed note; null if it is empty. */
export function keyNote(given: string | null): string | null {
  const note = given?.trim() ?? "";
  if (maskKeys(note) !== note) {
    throw invalidRequest("note: holds a whole API key. Notes are shown to others; leave it out.");
  }
  if (unprintable.test(note.replace(/[\n\t]/g, " "))) {
    throw invalidRequest("note: must be printable characters, tabs and line feeds.");
  }
  return note === "" ? null : note;
}
