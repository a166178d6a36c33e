// Names of what usage tells the ids of: keys, members who were signed in, apps. Bounded: an id without one is shown short.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { pagesOf, useSliced } from "./queries.ts";
import { useSession } from "./session.tsx";
import type { ApiKeyList, AppList, AuthorizationList, MemberList } from "./types.ts";

export interface Names {
  key(id: string): string;
  /** Null stands for no app. */
  app(id: string | null): string;
  /** `id`: of a person who is a member now. */
  person(id: string): string;
  /** In the order of their names, for a choice of one. */
  keys: readonly { value: string; label: string }[];
  apps: readonly { value: string; label: string }[];
  /** They are being asked for: ids are shown short so far. */
  isPending: boolean;
}

type Known = Awaited<ReturnType<typeof loadNames>>;

const nothing: Known = { keys: new Map(), members: new Map(), people: new Map(), apps: new Map() };

/** Asked for once, and again where keys or apps changed. `wanted`: whether anything of it is shown now. */
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

/** Up to a thousand. What one may not list has no names, which is no reason to show nothing. */
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

/** The name of a key, a member or an app; `names` has those that the server told of. */
export function credentialName(names: Readonly<Record<string, string>>, id: string): string {
  return names[id] ?? unnamed(id);
}

/** The credential of a membership is its id and the environment. */
const membershipOf = /^(mbr_.+)_(?:live|test|dev)$/;

function unnamed(id: string): string {
  if (membershipOf.test(id)) return "A member (signed in)";
  return id.startsWith("grt_") ? `App access ${shortened(id)}` : shortened(id);
}

/** An id without a name, as short as it can be told from others. */
export function shortened(id: string): string {
  return id.length > 16 ? `${id.slice(0, id.indexOf("_") + 1)}…${id.slice(-6)}` : id;
}

function choices(names: ReadonlyMap<string, string>) {
  return [...names].map(([value, label]) => ({ value, label })).sort((a, b) => a.label.localeCompare(b.label, "en"));
}
