// Schemas of the budgets of end users in the API's requests and answers.
import { z } from "zod";
import { maxEndUserQuotas } from "../../domain/end-users.ts";
import { givenQuotas, shownQuotas, usedQuotas } from "../quotas.ts";

const quotas = givenQuotas
  .max(maxEndUserQuotas)
  .describe(
    `The budget: at most ${maxEndUserQuotas} quotas with calendar windows and no \`tag\`, for each environment. An empty list means no limit.`,
  );

export const endUserRequest = z.object({ quotas }).meta({ id: "EndUserRequest" });
export const endUserDefaultRequest = z
  .object({ default_quotas: quotas.nullable().describe("null: end users without a budget of their own have none.") })
  .meta({ id: "EndUserDefaultRequest" });

const endUser = {
  object: z.literal("end_user"),
  id: z.string().describe("Id of the end user. An id that cannot be a tag is replaced by its hash."),
  quotas: shownQuotas.describe("Quotas of this end user."),
} as const;

export const endUserShape = z.object(endUser).meta({ id: "EndUser" });
export const endUserDetailsShape = z
  .object({
    ...endUser,
    is_default: z.boolean().describe("True if the end user has no budget of their own."),
    quotas_used: usedQuotas.describe("Quotas of this end user, with their usage."),
  })
  .meta({ id: "EndUserDetails" });
export const endUserListShape = z
  .object({
    object: z.literal("list"),
    default_quotas: shownQuotas.nullable().describe("Quotas of each end user without a budget of their own."),
    data: z.array(endUserShape).describe("End users with a budget of their own."),
  })
  .meta({ id: "EndUserList" });
