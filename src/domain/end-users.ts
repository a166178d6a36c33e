// An end user is a user whom an account's requests name and who is not a member. The account can set budgets for end
// users.
import type { QuotaRule } from "./limits/quota-rules.ts";
import { isTag } from "./usage/request-tags.ts";

/** The budgets that an account sets for its end users. Rules have calendar windows and no tag. */
export interface EndUserBudgets {
  /** The budget of each end user without a budget of their own. Null means none. */
  readonly default: readonly QuotaRule[] | null;
  /** The budgets by tag, such as `user:alice`. */
  readonly named: Readonly<Record<string, readonly QuotaRule[]>>;
}

/** Maximum number of end users with budgets of their own. The budgets are read with each credential of the account. */
export const maxNamedEndUsers = 200;
/** Maximum length of all budgets as JSON. Reading a credential costs about 1 ms for each 250,000 characters. */
export const maxBudgetsLength = 128 * 1024;
/** Maximum number of quotas of an end user. Each is checked with every request of the end user. */
export const maxEndUserQuotas = 4;
/**
 * The tag for further end users once requests have named too many different ones in a day. All of these share one
 * budget.
 */
export const otherEndUsers = "user:other";
const prefix = "user:";

/** Returns the tag under which the requests of an end user count. An id that cannot be a tag is replaced by its hash. */
export function endUserTag(id: string): string {
  const tag = prefix + id;
  return isTag(tag) ? tag : `${prefix}sha256:${Bun.SHA256.hash(id, "hex")}`;
}

export function isEndUserTag(tag: string): boolean {
  return tag.startsWith(prefix);
}

/** Returns the id of an end user as the API shows it. */
export function endUserOf(tag: string): string {
  return tag.slice(prefix.length);
}

/** Returns the rules that limit the end user with this tag; undefined if there are none. */
export function budgetOf(budgets: EndUserBudgets, tag: string): readonly QuotaRule[] | undefined {
  if (!isEndUserTag(tag)) return undefined;
  return Object.hasOwn(budgets.named, tag) ? budgets.named[tag] : (budgets.default ?? undefined);
}
