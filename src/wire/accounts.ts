// The shapes of accounts and tiers on the wire, as operators read and change them.
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
/** The configuration file has the same. */
export const tierNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

const accountStatus = z.enum(["active", "suspended"]);
const accountName = z.string().min(1).max(100).describe("For people; printable characters.");
const tierName = z.string().min(1).max(63);
const storeChats = z.boolean().describe("Whether chat completions are stored where a request does not say.");
const overrideMeaning =
  'in place of the tier\'s: a number, "unlimited" for no limit, or null for as the tier says. Per environment.';

const listMeaning = "in place of the tier's: a list, empty for none, or null for as the tier says. Per environment.";

/** The same values are read and written, so that what was read can be sent back. */
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
    status: accountStatus.optional().describe("While an account is suspended, all of its keys are refused."),
    ...byWire(accountAmounts, ({ wire }) => overrides[wire].optional()),
    quotas: givenQuotas.nullish().describe(`Quotas per window, ${listMeaning}`),
    store_chats: storeChats.optional(),
    tools: givenTools.nullish(),
  })
  .meta({ id: "UpdateAccountRequest", description: "What is left out stays as it is." });
export type UpdateAccountRequest = z.infer<typeof updateAccountRequest>;

const accountMembers = {
  object: z.literal("account"),
  id: z.string(),
  name: z.string(),
  tier: z.string().describe("One that no longer exists limits like `free`."),
  status: accountStatus,
  ...overrides,
  quotas: shownQuotas.nullable().describe(`Quotas per window, ${listMeaning}`),
  store_chats: storeChats,
  tools: shownTools,
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
          z.object({
            environment: z.enum(environments),
            tokens: allowance,
            spend: allowance.describe("USD."),
            windows: usedQuotas.describe("Quotas per window."),
          }),
        ),
      })
      .describe("This calendar month (UTC): what holds, override and tier taken together, and what was used."),
  })
  .meta({ id: "AccountDetails" });

const tierEnvironments = z.array(z.enum(environments)).max(environments.length);

const tierPriority = z
  .enum(priorities)
  .describe(
    `The highest that requests of its accounts may have, in all environments, and the one of those that say none. Default: \`${defaultPriority}\`.`,
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
        `Where the limits hold; elsewhere there are none. Default: \`${defaultTierEnvironments.join("`, `")}\`.`,
      ),
    priority: tierPriority.nullish(),
  })
  .meta({
    id: "TierRequest",
    description: "All of the tier: `null` is no limit, and so is what is left out of the members that may be left out.",
  });
export type TierRequest = z.infer<typeof tierRequest>;

export const tierShape = z
  .object({
    object: z.literal("tier"),
    name: z.string(),
    ...byWire(requiredAmounts, (amount) => boundedAmount(amount).nullable().describe("null: no limit.")),
    ...byWire(optionalAmounts, shownAmount),
    quotas: shownQuotas,
    environments: tierEnvironments.describe("Where the limits hold; elsewhere there are none."),
    priority: tierPriority,
    source: z
      .enum(["built-in", "file", "database"])
      .describe("Where its figures come from; those of `file` are changed in headrace.yaml alone."),
    accounts: z.int().describe("How many accounts have it."),
  })
  .meta({ id: "Tier" });
export type TierWire = z.infer<typeof tierShape>;
