// The shapes of accounts and tiers on the wire, as operators read and change them.
import { z } from "zod";
import { defaultTierEnvironments } from "../domain/account.ts";
import { environments } from "../domain/api-key.ts";
import { monthlySpend, monthlyTokens } from "./keys.ts";
import { unixSeconds } from "./parts.ts";

export const defaultTierName = "free";
/** As the configuration file has it. */
export const tierNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

const accountStatus = z.enum(["active", "suspended"]);
const accountName = z.string().min(1).max(100).describe("For people; printable characters.");
const tierName = z.string().min(1).max(63);
const storeChats = z.boolean().describe("Whether chat completions are stored where a request does not say.");
const overrideMeaning =
  'in place of the tier\'s: a number, "unlimited" for no limit, or null for as the tier says. Per environment.';

/** The same values are read and written, so that what was read can be sent back. */
const tokensOverride = z
  .union([monthlyTokens, z.literal("unlimited")])
  .nullable()
  .describe(`Tokens per calendar month (UTC), ${overrideMeaning}`);
const spendOverride = z
  .union([monthlySpend, z.literal("unlimited")])
  .nullable()
  .describe(`USD per calendar month (UTC), ${overrideMeaning}`);

export const createAccountRequest = z
  .object({
    name: accountName,
    tier: tierName.nullish().describe(`Name of a tier; \`${defaultTierName}\` by default.`),
  })
  .meta({ id: "CreateAccountRequest" });
export type CreateAccountRequest = z.infer<typeof createAccountRequest>;

export const updateAccountRequest = z
  .object({
    name: accountName.optional(),
    tier: tierName.optional().describe("Name of a tier."),
    status: accountStatus.optional().describe("While an account is suspended, all of its keys are refused."),
    monthly_tokens: tokensOverride.optional(),
    monthly_spend: spendOverride.optional(),
    store_chats: storeChats.optional(),
  })
  .meta({ id: "UpdateAccountRequest", description: "What is left out stays as it is." });
export type UpdateAccountRequest = z.infer<typeof updateAccountRequest>;

const accountMembers = {
  object: z.literal("account"),
  id: z.string(),
  name: z.string(),
  tier: z.string().describe("One that no longer exists limits like `free`."),
  status: accountStatus,
  monthly_tokens: tokensOverride,
  monthly_spend: spendOverride,
  store_chats: storeChats,
  created_at: unixSeconds,
} as const;

const allowance = z.object({ limit: z.number().nullable().describe("null: no limit."), used: z.number() });

export const accountShape = z.object(accountMembers).meta({ id: "Account" });
export type AccountWire = z.infer<typeof accountShape>;

export const accountDetailsShape = z
  .object({
    ...accountMembers,
    quota: z
      .object({
        period_start: unixSeconds,
        period_end: unixSeconds,
        environments: z.array(
          z.object({ environment: z.enum(environments), tokens: allowance, spend: allowance.describe("USD.") }),
        ),
      })
      .describe("This calendar month (UTC): what holds, override and tier taken together, and what was used."),
  })
  .meta({ id: "AccountDetails" });

const perMinute = z.int().min(1).max(1_000_000_000).nullable();
const tierEnvironments = z.array(z.enum(environments)).max(environments.length);

export const tierRequest = z
  .object({
    requests_per_minute: perMinute.describe("null: no limit. Per account and environment."),
    tokens_per_minute: perMinute.describe("null: no limit. Per account and environment."),
    monthly_tokens: monthlyTokens.nullish(),
    monthly_spend: monthlySpend.nullish(),
    environments: tierEnvironments
      .nullish()
      .describe(
        `Where the limits hold; elsewhere there are none. Default: \`${defaultTierEnvironments.join("`, `")}\`.`,
      ),
  })
  .meta({ id: "TierRequest", description: "All of the tier: what is left out has its default, which is no limit." });
export type TierRequest = z.infer<typeof tierRequest>;

export const tierShape = z
  .object({
    object: z.literal("tier"),
    name: z.string(),
    requests_per_minute: perMinute.describe("null: no limit."),
    tokens_per_minute: perMinute.describe("null: no limit."),
    monthly_tokens: z.number().nullable().describe("null: no limit."),
    monthly_spend: z.number().nullable().describe("USD; null: no limit."),
    environments: tierEnvironments.describe("Where the limits hold; elsewhere there are none."),
    source: z
      .enum(["built-in", "file", "database"])
      .describe("Where its figures come from; those of `file` are changed in headrace.yaml alone."),
    accounts: z.int().describe("How many accounts have it."),
  })
  .meta({ id: "Tier" });
export type TierWire = z.infer<typeof tierShape>;
