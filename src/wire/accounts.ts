// Schemas of accounts and tiers in the API's requests and answers, as operators read and change them.
import { z } from "zod";
import { defaultTierEnvironments } from "../domain/account.ts";
import { environments } from "../domain/api-key.ts";
import { accountAmounts, amountSentence, byWire, optionalAmounts, requiredAmounts } from "../domain/limits/amounts.ts";
import { defaultPriority, priorities } from "../domain/models/policies/priority.ts";
import { boundedAmount, givenAmount, shownAmount } from "./amounts.ts";
import { unixSeconds } from "./parts.ts";
import { givenQuotas, shownQuotas, usedQuotas } from "./quotas.ts";
import { givenTools, shownTools } from "./tools/tool-lists.ts";

export const defaultTierName = "free";
/** Matches the names of tiers. The configuration file has the same pattern. */
export const tierNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

const accountStatus = z.enum(["active", "suspended"]);
const accountName = z.string().min(1).max(100).describe("Display name, in printable characters.");
const tierName = z.string().min(1).max(63);
const storeChats = z.boolean().describe("True to store chat completions of requests that do not set `store`.");
const overrideMeaning = `replacing the tier's: a number, "unlimited" for no limit, or null for the tier's value. Per environment.`;

const listMeaning = "replacing the tier's: a list, empty for none, or null for the tier's quotas. Per environment.";

/**
 * The limits that an account itself has. Requests and answers use the same form, so that a client can send back what it
 * has read.
 */
const overrides = byWire(accountAmounts, (amount) =>
  z
    .union([givenAmount(amount), z.literal("unlimited")])
    .nullable()
    .describe(`${amountSentence(amount)}, ${overrideMeaning}`),
);

export const createAccountRequest = z
  .object({
    name: accountName,
    tier: tierName.nullish().describe(`Name of a tier; \`${defaultTierName}\` by default.`),
    tools: givenTools.nullish(),
  })
  .meta({ id: "CreateAccountRequest" });
export type CreateAccountRequest = z.infer<typeof createAccountRequest>;

export const updateAccountRequest = z
  .object({
    name: accountName.optional(),
    tier: tierName.optional().describe("Name of a tier."),
    status: accountStatus.optional().describe("While an account is suspended, all its keys are refused."),
    ...byWire(accountAmounts, ({ wire }) => overrides[wire].optional()),
    quotas: givenQuotas.nullish().describe(`Quotas per window, ${listMeaning}`),
    store_chats: storeChats.optional(),
    tools: givenTools.nullish(),
  })
  .meta({ id: "UpdateAccountRequest", description: "Omitted members keep their values." });
export type UpdateAccountRequest = z.infer<typeof updateAccountRequest>;

const accountMembers = {
  object: z.literal("account"),
  id: z.string(),
  name: z.string(),
  tier: z.string().describe("A tier that no longer exists applies the limits of `free`."),
  status: accountStatus,
  ...overrides,
  quotas: shownQuotas.nullable().describe(`Quotas per window, ${listMeaning}`),
  store_chats: storeChats,
  tools: shownTools,
  organization: z.string().nullable().describe("Id of the organization that the account belongs to, `org_…`."),
  created_at: unixSeconds,
} as const;

const allowance = z.object({ limit: z.number().nullable().describe("null: no limit."), used: z.number() });

/** The limits of an account or organization, and how much of each limit is used in this month. */
export const accountQuota = z.object({
  period_start: unixSeconds,
  period_end: unixSeconds,
  environments: z.array(
    z.object({
      environment: z.enum(environments),
      tokens: allowance,
      spend: allowance.describe("USD."),
      windows: usedQuotas.describe("Quotas per window."),
    }),
  ),
});
export type AccountQuotaWire = z.infer<typeof accountQuota>;

export const accountShape = z.object(accountMembers).meta({ id: "Account" });
export type AccountWire = z.infer<typeof accountShape>;

export const accountDetailsShape = z
  .object({
    ...accountMembers,
    quota: accountQuota.describe(
      "Limits and usage of this calendar month (UTC). The limits combine the account's overrides with its tier.",
    ),
  })
  .meta({ id: "AccountDetails" });

const tierEnvironments = z.array(z.enum(environments)).max(environments.length);

const tierPriority = z
  .enum(priorities)
  .describe(
    `Highest priority of requests of its accounts in all environments, and the default priority. Default: \`${defaultPriority}\`.`,
  );

export const tierRequest = z
  .object({
    ...byWire(requiredAmounts, (amount) =>
      boundedAmount(amount).nullable().describe("null: no limit. Per account and environment."),
    ),
    ...byWire(optionalAmounts, (amount) => givenAmount(amount).nullish()),
    quotas: givenQuotas.nullish(),
    environments: tierEnvironments
      .nullish()
      .describe(
        `Environments in which the limits apply. The other environments have no limits. Default: \`${defaultTierEnvironments.join("`, `")}\`.`,
      ),
    priority: tierPriority.nullish(),
  })
  .meta({
    id: "TierRequest",
    description: "All figures of the tier. `null` means no limit, and so does an omitted optional member.",
  });
export type TierRequest = z.infer<typeof tierRequest>;

export const tierShape = z
  .object({
    object: z.literal("tier"),
    name: z.string(),
    ...byWire(requiredAmounts, (amount) => boundedAmount(amount).nullable().describe("null: no limit.")),
    ...byWire(optionalAmounts, shownAmount),
    quotas: shownQuotas,
    environments: tierEnvironments.describe(
      "Environments in which the limits apply. The other environments have no limits.",
    ),
    priority: tierPriority,
    source: z
      .enum(["built-in", "file", "database"])
      .describe("Source of its figures. Figures from `file` can only be changed in headrace.yaml."),
    accounts: z.int().describe("Number of accounts with this tier."),
  })
  .meta({ id: "Tier" });
export type TierWire = z.infer<typeof tierShape>;
