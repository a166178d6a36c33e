// Adds names to the ids of keys, members and apps in a usage table, as far as the credential may see them.
import { z } from "zod";
import { commandLineAppId } from "../../domain/people/app.ts";
import { listApps } from "../apps/app-records.ts";
import { listKeys } from "../keys/key-records.ts";
import { ApiError, requestList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import type { UsageRow } from "./usage-table.ts";

type Named = Pick<UsageRow, "key" | "app">;

/** Names by id. */
type Names = ReadonlyMap<string, string>;

const member = z.object({ id: z.string(), email: z.string() });
const allowed = z.object({ app: z.object({ id: z.string(), name: z.string() }) });
const withEnvironment = /^(mbr_.+)_[a-z]+$/;

/**
 * Returns the rows with names. If the key of a row is an OAuth grant and the rows lack the app, `readGrants` is called:
 * it returns the same usage by key and app, which shows the grant's app.
 */
export async function withNames<Row extends Named>(
  connection: Connection,
  rows: readonly Row[],
  readGrants: (signal: AbortSignal) => Promise<readonly Named[]>,
  signal: AbortSignal,
): Promise<readonly Row[]> {
  const ids = present(rows.map((row) => row.key));
  const has = (start: string) => ids.some((id) => id.startsWith(start));
  const grants = has("grt_")
    ? await appsOfGrants(rows, () => orNothing(readGrants(signal)))
    : new Map<string, string>();
  const appIds = new Set([...present(rows.map((row) => row.app)), ...grants.values()]);
  const [keys, members, apps] = await Promise.all([
    has("key_") ? namesOfKeys(connection, signal) : new Map(),
    has("mbr_") ? namesOfMembers(connection, signal) : new Map(),
    namesOfApps(connection, appIds, signal),
  ]);
  const ofKey = (id: string) => {
    const membershipId = withEnvironment.exec(id)?.[1];
    const name = membershipId === undefined ? apps.get(grants.get(id) ?? "") : members.get(membershipId);
    return keys.get(id) ?? beside(name, id);
  };
  const ofApp = (id: string) => (id === commandLineAppId ? apps.get(id) : undefined) ?? beside(apps.get(id), id);
  return rows.map((row) => ({ ...row, key: row.key && ofKey(row.key), app: row.app && ofApp(row.app) }));
}

function beside(name: string | undefined, id: string): string {
  return name === undefined ? id : `${name} (${id})`;
}

async function appsOfGrants(
  rows: readonly Named[],
  read: () => Promise<readonly Named[]>,
): Promise<Map<string, string>> {
  const hasApps = rows.some((row) => row.app !== undefined);
  const pairs = (hasApps ? rows : await read()).flatMap(({ key, app }) => (key && app ? [[key, app] as const] : []));
  return new Map(pairs);
}

/** Returns the names of the keys that the credential may see. */
export async function namesOfKeys(connection: Connection, signal: AbortSignal): Promise<Names> {
  const keys = await orNothing(listKeys(connection, signal));
  return new Map(keys.map(({ key }) => [key.id, `${key.name} (${key.last4})`]));
}

async function namesOfMembers(connection: Connection, signal: AbortSignal): Promise<Names> {
  const members = await orNothing(requestList(connection, "/members", signal));
  return new Map(
    members.map((raw) => understood(member, raw, connection, "list of members")).map(({ id, email }) => [id, email]),
  );
}

/** Returns app names: first of the account's own apps, then of other apps that the person authorized. */
async function namesOfApps(connection: Connection, ids: ReadonlySet<string>, signal: AbortSignal): Promise<Names> {
  const names = new Map([[commandLineAppId, "command line"]]);
  const isMissing = () => [...ids].some((id) => !names.has(id));
  if (isMissing()) for (const { app } of await orNothing(listApps(connection, signal))) names.set(app.id, app.name);
  if (!isMissing()) return names;
  for (const raw of await orNothing(requestList(connection, "/authorizations", signal))) {
    const { app } = understood(allowed, raw, connection, "list of allowed apps");
    if (!names.has(app.id)) names.set(app.id, app.name);
  }
  return names;
}

/** Returns an empty list if the server refuses or lacks the list. The table then shows ids in place of names. */
async function orNothing<Entry>(list: Promise<readonly Entry[]>): Promise<readonly Entry[]> {
  return list.catch((error: unknown) => {
    if (error instanceof ApiError) return [];
    throw error;
  });
}

function present(values: readonly (string | null | undefined)[]): string[] {
  return values.filter((value) => value != null);
}
