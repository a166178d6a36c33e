// Returns names for the lines of a statement that the caller may see.
import { type AppStore, commandLineAppId, commandLineName } from "../../../domain/people/app.ts";
import { ownOnly, type Principal } from "../../../domain/principal.ts";
import type { StatementLine, StatementQuery, UsageParties, UsageParty } from "../../../domain/usage/statement.ts";

export interface StatementNameSources {
  parties: UsageParties;
  apps: Pick<AppStore, "findApp">;
}

/** Decides which names of keys and people a caller may see. */
export interface Sight {
  key(party: UsageParty): boolean;
  person(id: string): boolean;
}

export const seesAllNames: Sight = { key: () => true, person: () => true };

/**
 * Returns the names that the caller may see, by the same rules as in lists: managers of keys see key names, owners and
 * admins see names of people, and everybody sees their own name.
 */
export function sightOf(principal: Principal): Sight {
  const { person, appId, scopes } = principal;
  const own = ownOnly(principal);
  const managesKeys = appId === null && scopes.has("keys:manage");
  return {
    key: ({ personId }) => managesKeys && (own === null || personId === own),
    person: (id) => person !== undefined && (own === null || id === person.id),
  };
}

export interface StatementNames {
  key(id: string): string | null;
  person(id: string): string | null;
  app(id: string): string | null;
}

/** Number of apps that are read in a row before other work runs. */
const atOnce = 20;

export async function statementNames(
  { accountId, environment }: Pick<StatementQuery, "accountId" | "environment">,
  lines: readonly Pick<StatementLine, "groups">[],
  sight: Sight,
  { parties, apps }: StatementNameSources,
): Promise<StatementNames> {
  const idsOf = (group: "key" | "person" | "app") => [
    ...new Set(lines.map(({ groups }) => groups[group] ?? null).filter((id) => id !== null)),
  ];
  const credentials = await parties.credentials({ accountId, environment }, idsOf("key"));
  const personIds = [...credentials.values()].map(({ personId }) => personId).filter((id) => id !== null);
  const people = await parties.people(accountId, [...new Set([...idsOf("person"), ...personIds])].filter(sight.person));
  const appIds = [...credentials.values()].map(({ appId }) => appId).filter((id) => id !== null);
  const appNames = await namesOfApps(new Set([...idsOf("app"), ...appIds]), apps);
  const ofParty = (party: UsageParty): string | null => {
    const who = party.personId === null ? null : (people.get(party.personId) ?? null);
    if (party.kind === "membership") return who === null ? null : `${who} (signed in)`;
    if (party.kind === "grant") {
      const app = appNames.get(party.appId ?? "") ?? "An app";
      return who === null ? app : `${app} (${who})`;
    }
    if (!sight.key(party)) return null;
    return party.name === "" ? `Key …${party.last4}` : party.name;
  };
  return {
    key(id) {
      const party = credentials.get(id);
      return party ? ofParty(party) : null;
    },
    person: (id) => people.get(id) ?? null,
    app: (id) => appNames.get(id) ?? null,
  };
}

async function namesOfApps(ids: ReadonlySet<string>, apps: StatementNameSources["apps"]): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  let read = 0;
  for (const id of ids) {
    const name = id === commandLineAppId ? commandLineName : (await apps.findApp(id))?.name;
    if (name !== undefined) names.set(id, name);
    if (++read % atOnce === 0) await new Promise(setImmediate);
  }
  return names;
}
