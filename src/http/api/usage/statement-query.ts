// The query parameters of a statement: the month, the grouping, and the filter.
import { z } from "zod";
import { type CalendarMonth, calendarMonthOf } from "../../../base/calendar-month.ts";
import { invalidRequest } from "../../../base/errors.ts";
import { environments } from "../../../domain/api-key.ts";
import type { Principal } from "../../../domain/principal.ts";
import { type StatementGroup, type StatementQuery, statementGroups } from "../../../domain/usage/statement.ts";
import { tag } from "../../../wire/tags.ts";
import { usageOwnerOf } from "./usage-owner.ts";

const monthText = "such as 2026-09, in UTC; by default the current month";

/** A month from 1970 to 9999, because times are Unix seconds and years have four digits. */
export const month = z.string().transform((text, context): CalendarMonth => {
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  // Years before 1970 are refused. `Date.UTC` would interpret the years 0 to 99 as 1900 to 1999.
  const start = year === undefined || Number(year) < 1970 ? -1 : Date.UTC(Number(year), Number(number) - 1, 1) / 1000;
  if (start >= 0) return calendarMonthOf(start);
  context.addIssue({ code: "custom", message: "not a month" });
  return z.NEVER;
});

const groupList = z.string().transform((text, context): StatementGroup[] => {
  const names = text.split(",").map((name) => name.trim());
  const groups = statementGroups.filter((group) => names.includes(group));
  if (groups.length === names.length) return groups;
  context.addIssue({ code: "custom", message: "not a list of groups" });
  return z.NEVER;
});

const id = (what: string) => z.string().min(1).max(200).optional().meta({ description: what });

export const statementParameters = z.object({
  month: month.optional().meta({ description: `a month, ${monthText}` }),
  group_by: groupList.optional().meta({
    description: `one or several of ${statementGroups.join(", ")}, each once, separated by commas, to get a line for each; by default only the total`,
  }),
  key: id("the id of a credential, as in the statement by key; only its usage counts"),
  person: id("the id of a person, `usr_…`; only their usage counts"),
  app: id("the id of an OAuth app; only usage through it counts"),
  tag: tag.optional().meta({ description: "a tag; only requests with it count" }),
});

const environment = z
  .enum(environments)
  .optional()
  .meta({ description: `one of ${environments.join(", ")}; by default that of the credential` });

/** Parameters for operators, who may also choose the environment. */
export const operatorParameters = statementParameters.extend({ environment });
export const allAccountsParameters = z.object({
  month: statementParameters.shape.month,
  environment,
  organization: id("the id of an organization, `org_…`; only the accounts that belong to it now"),
});

type Asked = z.output<typeof statementParameters>;

/**
 * Returns the query for the part of the account's usage that the caller may see. Throws `invalid_request` if the
 * caller asks for the usage of another person or app.
 */
export function ownQuery(asked: Asked, principal: Principal, nowSeconds: number): StatementQuery {
  const owner = usageOwnerOf(principal);
  if (owner.personId !== undefined && asked.person !== undefined && asked.person !== owner.personId) {
    throw invalidRequest("person: you see your own usage alone; leave it out.");
  }
  if (owner.appId !== undefined && asked.app !== undefined && asked.app !== owner.appId) {
    throw invalidRequest("app: an app sees its own usage alone; leave it out.");
  }
  return { ...partOf(asked), ...owner, ...timeOf(asked, nowSeconds), groupBy: asked.group_by ?? [] };
}

/** Returns an operator's query for any account. */
export function operatorQuery(
  asked: z.output<typeof operatorParameters>,
  accountId: string,
  principal: Principal,
  nowSeconds: number,
): StatementQuery {
  const scope = { accountId, environment: asked.environment ?? principal.environment };
  return { ...partOf(asked), ...scope, ...timeOf(asked, nowSeconds), groupBy: asked.group_by ?? [] };
}

export function timeOf(asked: Pick<Asked, "month">, nowSeconds: number): CalendarMonth {
  return asked.month ?? calendarMonthOf(nowSeconds);
}

function partOf({ key, person, app, tag: one }: Asked) {
  return {
    ...(key === undefined ? {} : { keyId: key }),
    ...(person === undefined ? {} : { personId: person }),
    ...(app === undefined ? {} : { appId: app }),
    ...(one === undefined ? {} : { tag: one }),
  };
}
