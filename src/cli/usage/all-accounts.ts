// The options with which operators see all accounts, and the names that the API returns for their ids.
import { z } from "zod";
import { existingAccountId } from "../admin/accounts.ts";
import { findPerson } from "../admin/people.ts";
import type { Connection } from "../login/connection.ts";
import { CliError, exitCodes } from "../terminal/terminal.ts";

export const ownerOptions = {
  allAccounts: ["--all-accounts", "show all accounts; needs an operator's key"],
  account: ["--account <account>", "with --all-accounts: show one account: name or id"],
  person: ["--person <who>", "with --all-accounts: show one person: e-mail address or id"],
} as const;

interface Asked {
  allAccounts?: boolean | undefined;
  account?: string | undefined;
  person?: string | undefined;
}

export const allNames = z.record(z.string(), z.string()).nullish();

export function isOfAll({ allAccounts }: Asked): boolean {
  return allAccounts === true;
}

/** Returns an API path below `/v1`. With `--all-accounts`, this is the operators' path, which begins with `/admin`. */
export function pathOf(path: string, asked: Asked): string {
  return isOfAll(asked) ? `/admin${path}` : path;
}

/** Throws a CliError if an option was given that only works together with `--all-accounts`. */
export function requireAll(asked: Asked, others: Readonly<Record<string, unknown>>): void {
  if (isOfAll(asked)) return;
  const given = Object.entries({ account: asked.account, person: asked.person, ...others });
  const [name] = given.find(([, value]) => value !== undefined) ?? [];
  if (name !== undefined) throw new CliError(`--${name} needs --all-accounts.`, exitCodes.usage);
}

/**
 * Returns the ids of the account and the person in the options. Rejects if the server knows no such account or person.
 */
export async function ownerIds(
  { account, person }: Asked,
  connection: Connection,
  signal: AbortSignal,
): Promise<{ account?: string; person?: string }> {
  return {
    ...(account === undefined ? {} : { account: await existingAccountId(connection, account, signal) }),
    ...(person === undefined ? {} : { person: (await findPerson(connection, person, signal)).id }),
  };
}

interface Party {
  organization?: string | null | undefined;
  account?: string | null | undefined;
  key?: string | null | undefined;
  app?: string | null | undefined;
  person?: string | null | undefined;
}

/** Returns the entry with names in place of ids. The key is shown after its account. */
export function withAllNames<Entry extends Party>(entry: Entry, names: Readonly<Record<string, string>>): Entry {
  const nameOf = (id: string) => names[id] ?? id;
  const { account, organization, key, app, person } = entry;
  const isSeparate = account == null || key == null;
  return {
    ...entry,
    ...(account == null ? {} : { account: nameOf(account) }),
    ...(organization == null ? {} : { organization: nameOf(organization) }),
    ...(key == null ? {} : { key: isSeparate ? nameOf(key) : `${nameOf(account)} / ${nameOf(key)}` }),
    ...(app == null ? {} : { app: nameOf(app) }),
    ...(person == null ? {} : { person: nameOf(person) }),
  };
}
