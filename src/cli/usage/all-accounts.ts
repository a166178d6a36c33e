// The options with which operators see all accounts, and the names that the API returns for their ids.
import { z } from "zod";
import { CliError, exitCodes } from "../terminal/terminal.ts";

export const ownerOptions = {
  allAccounts: ["--all-accounts", "show all accounts; needs an operator's key"],
  account: ["--account <id>", "with --all-accounts: show one account"],
  person: ["--person <id>", "with --all-accounts: show one person"],
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

/** Returns the path below `/v1`: the operators' one for all accounts. */
export function pathOf(path: string, asked: Asked): string {
  return isOfAll(asked) ? `/admin${path}` : path;
}

/** Throws a CliError if an option was given that only `--all-accounts` knows. */
export function requireAll(asked: Asked, others: Readonly<Record<string, unknown>>): void {
  if (isOfAll(asked)) return;
  const given = Object.entries({ account: asked.account, person: asked.person, ...others });
  const [name] = given.find(([, value]) => value !== undefined) ?? [];
  if (name !== undefined) throw new CliError(`--${name} needs --all-accounts.`, exitCodes.usage);
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
