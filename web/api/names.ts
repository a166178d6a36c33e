// Resolves the ids in usage reports to names: of keys, of members who signed in, and of apps. At most a thousand names
// of each are loaded; an id without a name is shown shortened.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { pagesOf, useSliced } from "./queries.ts";
import { useSession } from "./session.tsx";
import type { ApiKeyList, AppList, AuthorizationList, MemberList } from "./types.ts";

export interface Names {
  key(id: string): string;
  /** Returns the name of an app; null stands for no app. */
  app(id: string | null): string;
  /** Returns the name of a current member by the person's id. */
  person(id: string): string;
  /** The keys in the order of their names, for a select field. */
  keys: readonly { value: string; label: string }[];
  apps: readonly { value: string; label: string }[];
  /** True while the names are loading; ids are shown shortened until then. */
  isPending: boolean;
}

type Known = Awaited<ReturnType<typeof loadNames>>;

const nothing: Known = { keys: new Map(), members: new Map(), people: new Map(), apps: new Map() };

/** Loads the names once, and again after keys or apps change. `wanted` is false if no name is on screen now. */
export function useNames(wanted: boolean): Names {
  const { environment, isManager } = useSession();
  const known = useQuery({
    queryKey: ["/v1/keys", "names", environment],
    queryFn: ({ signal }) => loadNames(isManager, signal),
    enabled: wanted,
    staleTime: 60_000,
  });
  const { data: read, isPending } = useSliced(known);
  const data = read ?? nothing;
  return useMemo(
    () => ({
      isPending: wanted && isPending,
      key: (id) => keyName(data, id),
      app: (id) => (id === null || id === "" ? "No app" : (data.apps.get(id) ?? shortened(id))),
      person: (id) => data.people.get(id) ?? shortened(id),
      keys: choices(data.keys),
      apps: choices(data.apps),
    }),
    [data, wanted, isPending],
  );
}

async function loadNames(isManager: boolean, signal: AbortSignal) {
  const [keys, apps, allowed, members] = await Promise.all([
    listAll<ApiKeyList["data"][number]>("/v1/keys", signal),
    listAll<AppList["data"][number]>("/v1/apps", signal),
    listAll<AuthorizationList["data"][number]>("/v1/authorizations", signal),
    isManager ? listAll<MemberList["data"][number]>("/v1/members", signal) : [],
  ]);
  return {
    keys: new Map(keys.map(({ id, name, last4 }) => [id, name === "" ? `Key …${last4}` : name])),
    apps: new Map([
      ...allowed.map(({ app }) => [app.id, app.name] as const),
      ...apps.map((app) => [app.id, app.name] as const),
    ]),
    members: new Map(members.map(({ id, name, email }) => [id, name || email])),
    people: new Map(members.map(({ person_id, name, email }) => [person_id, name || email])),
  };
}

/** Lists up to a thousand items. If the user may not list them, the result is empty rather than an error. */
export async function listAll<Item>(path: string, signal: AbortSignal): Promise<Item[]> {
  const items: Item[] = [];
  try {
    for await (const { data } of pagesOf<Item>(path, { limit: 100 }, signal)) items.push(...data);
  } catch {
    signal.throwIfAborted();
  }
  return items;
}

function keyName({ keys, members }: Known, id: string): string {
  const [, membership] = membershipOf.exec(id) ?? [];
  const member = membership === undefined ? undefined : members.get(membership);
  return keys.get(id) ?? (member === undefined ? unnamed(id) : `${member} (signed in)`);
}

/** Returns the name of a key, a member or an app; `names` holds the names that the server sent. */
export function credentialName(names: Readonly<Record<string, string>>, id: string): string {
  return names[id] ?? unnamed(id);
}

/** The credential id of a membership is the membership's id and the environment. */
const membershipOf = /^(mbr_.+)_(?:live|test|dev)$/;

function unnamed(id: string): string {
  if (membershipOf.test(id)) return "A member (signed in)";
  return id.startsWith("grt_") ? `App access ${shortened(id)}` : shortened(id);
}

/** Shortens an id that has no name to its prefix and its last six characters, which distinguish it from other ids. */
export function shortened(id: string): string {
  return id.length > 16 ? `${id.slice(0, id.indexOf("_") + 1)}…${id.slice(-6)}` : id;
}

function choices(names: ReadonlyMap<string, string>) {
  return [...names].map(([value, label]) => ({ value, label })).sort((a, b) => a.label.localeCompare(b.label, "en"));
}
