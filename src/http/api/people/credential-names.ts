// Names of credentials and apps for display. A member sees only the names of their own keys.
import { type AppStore, commandLineAppId, commandLineName } from "../../../domain/people/app.ts";
import type { PersonStore } from "../../../domain/people/person.ts";
import { type KeyStore, ownOnly, type Principal } from "../../../domain/principal.ts";
import { isHere } from "../../../policy/manage/manage-keys.ts";

export interface NameSources {
  keys: Pick<KeyStore, "findChainById">;
  people: Pick<PersonStore, "findMembership" | "findPerson">;
  apps: Pick<AppStore, "findApp">;
}

/** Number of names that are read in a row before other work runs, because SQLite runs on the main thread. */
const atOnce = 20;

/** Returns names by id. Ids without a name, and names that the caller may not see, are left out. */
export async function namesOf(
  ids: Iterable<string>,
  principal: Principal,
  sources: NameSources,
): Promise<Record<string, string>> {
  const names: Record<string, string> = {};
  let read = 0;
  for (const id of new Set(ids)) {
    const name = await nameOf(id, principal, sources);
    if (name !== undefined) names[id] = name;
    if (++read % atOnce === 0) await new Promise(setImmediate);
  }
  return names;
}

async function nameOf(
  id: string,
  principal: Principal,
  { keys, people, apps }: NameSources,
): Promise<string | undefined> {
  if (id === commandLineAppId) return commandLineName;
  if (id.startsWith("app_")) return (await apps.findApp(id))?.name;
  // The credential id of a membership is its id followed by the environment.
  const [, membershipId] = /^(mbr_.+)_(?:live|test|dev)$/.exec(id) ?? [];
  if (membershipId !== undefined) return memberName(membershipId, principal, people);
  const mayListKeys = principal.appId === null && principal.scopes.has("keys:manage");
  if (!id.startsWith("key_") || !mayListKeys) return undefined;
  const key = (await keys.findChainById(id))?.keys[0];
  if (!key || !isHere(principal, key)) return undefined;
  return key.name === "" ? `Key …${key.last4}` : key.name;
}

async function memberName(
  membershipId: string,
  principal: Principal,
  people: NameSources["people"],
): Promise<string | undefined> {
  const membership = await people.findMembership(membershipId);
  if (membership?.accountId !== principal.account.id) return undefined;
  // Only owners and admins may see names of other members.
  const isOwn = membership.personId === principal.person?.id;
  if (!isOwn && (!principal.person || ownOnly(principal) !== null)) return undefined;
  const person = await people.findPerson(membership.personId);
  return person && `${person.name || person.email} (signed in)`;
}
