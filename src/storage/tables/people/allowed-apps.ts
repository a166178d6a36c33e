// The apps that a person allowed, from current grants.
import { commandLineAppId, commandLineName, commandLinePublisher } from "../../../domain/people/app.ts";
import type { AllowedApp } from "../../../domain/people/oauth.ts";
import { publisherOf } from "../../../domain/people/outside-client.ts";
import { scopes } from "../../../domain/scope.ts";
import { eitherTools } from "../../../domain/tools/tool-access.ts";
import type { Database } from "../../sql/database.ts";
import { integer, json, jsonList, table, text, words } from "../../sql/table.ts";

export interface LiveGrant extends Omit<AllowedApp, "appName" | "publisher" | "allowedAt"> {
  /** null for the command line tool. A client that no account registered chooses its own name. */
  appName: string | null;
  publisher: string | null;
  outsideId: string | null;
  documentUrl: string | null;
  parentId: string;
  createdAt: number;
}

const liveGrants = table<LiveGrant>({
  appId: text,
  appName: text,
  publisher: text,
  outsideId: text,
  documentUrl: text,
  homepageUrl: text,
  accountId: text,
  accountName: text,
  environment: text,
  parentId: text,
  scopes: words,
  tools: json,
  quotas: jsonList,
  limitId: text,
  createdAt: integer,
  lastUsedAt: integer,
});

/** Reads current grants, oldest first. A grant without a valid refresh token has ended. */
export function readLiveGrants(db: Database, personId: string, nowSeconds: number): Promise<LiveGrant[]> {
  return liveGrants.all(db`
    SELECT g.app_id, g.account_id, g.environment, g.parent_id, g.scopes, g.tools, g.quotas, g.limit_id, g.created_at, g.last_used_at,
      accounts.name AS account_name, COALESCE(apps.name, o.name) AS app_name,
      COALESCE(apps.homepage_url, o.homepage_url) AS homepage_url, publishers.name AS publisher,
      o.id AS outside_id, o.document_url
    FROM api_keys g
      JOIN api_keys m ON m.id = g.parent_id
      JOIN accounts ON accounts.id = g.account_id
      LEFT JOIN apps ON apps.id = g.app_id
      LEFT JOIN outside_clients o ON o.id = g.app_id
      LEFT JOIN accounts publishers ON publishers.id = apps.account_id
    WHERE g.person_id = ${personId} AND g.kind = 'grant' AND g.revoked = 0
      AND m.revoked = 0 AND (m.revoked_at IS NULL OR m.revoked_at > ${nowSeconds})
      AND (apps.id IS NOT NULL OR o.id IS NOT NULL OR g.app_id = ${commandLineAppId})
      AND EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.grant_id = g.id AND t.expires_at > ${nowSeconds})
    ORDER BY g.created_at, g.id`);
}

export function allowedApps(grants: readonly LiveGrant[]): AllowedApp[] {
  const together = Map.groupBy(grants, (grant) => [grant.appId, grant.accountId, grant.environment].join(" "));
  return [...together.values()].flatMap((rows) => allowedApp(rows) ?? []);
}

/** Returns each scope of the grants once, in the order of `scopes`, and the tools of all grants that may use tools. */
export function togetherOf(
  grants: readonly Pick<LiveGrant, "scopes" | "tools">[],
): Pick<AllowedApp, "scopes" | "tools"> {
  const names = new Set(grants.flatMap((grant) => grant.scopes));
  const ofTools = grants.filter((grant) => grant.scopes.includes("tools:use"));
  return { scopes: scopes.filter((scope) => names.has(scope)), tools: eitherTools(ofTools.map(({ tools }) => tools)) };
}

function allowedApp(grants: readonly LiveGrant[]): AllowedApp | undefined {
  const [first] = grants;
  if (!first) return undefined;
  const { appId, homepageUrl, accountId, accountName, environment } = first;
  const used = grants.flatMap(({ lastUsedAt: at }) => (at === null ? [] : [at]));
  return {
    appId,
    ...namesOf(first),
    homepageUrl,
    accountId,
    accountName,
    environment,
    ...togetherOf(grants),
    quotas: first.quotas,
    limitId: first.limitId,
    allowedAt: first.createdAt,
    lastUsedAt: used.length === 0 ? null : Math.max(...used),
  };
}

function namesOf({ appName, publisher, outsideId, documentUrl }: LiveGrant): Pick<AllowedApp, "appName" | "publisher"> {
  if (outsideId === null) return { appName: appName ?? commandLineName, publisher: publisher ?? commandLinePublisher };
  const itself = publisherOf(documentUrl);
  return { appName: appName || itself, publisher: itself };
}
