// Schemas of organizations in the API's requests and answers.
import { z } from "zod";
import { accountAmounts, byWire } from "../../domain/limits/amounts.ts";
import { accountQuota } from "../accounts.ts";
import { givenAmount, shownAmount } from "../amounts.ts";
import { unixSeconds } from "../parts.ts";
import { givenQuotas, shownQuotas } from "../quotas.ts";

const name = z.string().min(1).max(100).describe("Display name, in printable characters.");
const limits = {
  ...byWire(accountAmounts, (amount) =>
    givenAmount(amount)
      .nullish()
      .describe(`${givenAmount(amount).description} For all accounts together. null: no limit.`),
  ),
  quotas: givenQuotas.nullish(),
};

export const createOrganizationRequest = z.object({ name, ...limits }).meta({ id: "CreateOrganizationRequest" });
export const updateOrganizationRequest = z
  .object({ name: name.optional(), ...limits })
  .meta({ id: "UpdateOrganizationRequest", description: "Omitted members keep their values." });
export type UpdateOrganizationRequest = z.infer<typeof updateOrganizationRequest>;

const members = {
  object: z.literal("organization"),
  id: z.string(),
  name: z.string(),
  ...byWire(accountAmounts, shownAmount),
  quotas: shownQuotas,
  accounts: z.int().describe("Number of its accounts."),
  created_at: unixSeconds,
} as const;

export const organizationShape = z.object(members).meta({ id: "Organization" });
export type OrganizationWire = z.infer<typeof organizationShape>;
export const organizationDetailsShape = z
  .object({
    ...members,
    quota: accountQuota.describe("Limits of the organization, and usage of its accounts in this calendar month (UTC)."),
  })
  .meta({ id: "OrganizationDetails" });
