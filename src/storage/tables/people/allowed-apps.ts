// Which apps a person allowed, read from the grants that have not ended.
import type { Environment } from "../../../domain/api-key.ts";
import { commandLineAppId, commandLineName, commandLinePublisher } from "../../../domain/people/app.ts";
import type { AllowedApp } from "../../../domain/people/oauth.ts";
import { type Scope, scopes } from "../../../domain/scope.ts";
import type { Database } from "../../sql/database.ts";
import { words } from "../credential-rows.ts";

export interface GrantRow {
  app_id: string;
  /** Null for the command line tool, which nobody registered. */
  app_name: string | null;
  publisher: string | null;
  homepage_url: string | null;
  account_id: string;
  account_name: string;
  environment: string;
  parent_id: string;
  scopes: string;
  created_at: number | string;
  last_used_at: number | string | null;
}

/** Oldest first. One whose refresh tokens are all over has ended as well: it stood idle for too long. */
export async function readLiveGrants(db: Database, personId: string, nowSeconds: number): Promise<GrantRow[]> {
  return db`
    SELECT g.app_id, g.account_id, g.environment, g.parent_id, g.scopes, g.created_at, g.last_used_at,
      accounts.name AS account_name, apps.name AS app_name, apps.homepage_url, publishers.name AS publisher
    FROM api_keys g
      JOIN api_keys m ON m.id = g.parent_id
      JOIN accounts ON accounts.id = g.account_id
      LEFT JOIN apps ON apps.id = g.app_id
      LEFT JOIN accounts publishers ON publishers.id = apps.account_id
    WHERE g.person_id = ${personId} AND g.kind = 'grant' AND g.revoked = 0
      AND m.revoked = 0 AND (m.revoked_at IS NULL OR m.revoked_at > ${nowSeconds})
      AND (apps.id IS NOT NULL OR g.app_id = ${commandLineAppId})
      AND EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.grant_id = g.id AND t.expires_at > ${nowSeconds})
    ORDER BY g.created_at, g.id`;
}

export function allowedApps(grants: readonly GrantRow[]): AllowedApp[] {
  const together = Map.groupBy(grants, (grant) => [grant.app_id, grant.account_id, grant.environment].join(" "));
  return [...together.values()].flatMap((rows) => allowedApp(rows) ?? []);
}

/** In the order of `accountScopes`, each once. */
export function scopesOf(grants: readonly Pick<GrantRow, "scopes">[]): Scope[] {
  const names = new Set(grants.flatMap((grant) => words(grant.scopes)));
  return scopes.filter((scope) => names.has(scope));
}

function allowedApp(grants: readonly GrantRow[]): AllowedApp | undefined {
  const [first] = grants;
  if (!first) return undefined;
  const used = grants.flatMap(({ last_used_at: at }) => (at === null ? [] : [Number(at)]));
  return {
    appId: first.app_id,
    appName: first.app_name ?? commandLineName,
    publisher: first.publisher ?? commandLinePublisher,
    homepageUrl: first.homepage_url,
    accountId: first.account_id,
    accountName: first.account_name,
    environment: first.environment as Environment,
    scopes: scopesOf(grants),
    allowedAt: Number(first.created_at),
    lastUsedAt: used.length === 0 ? null : Math.max(...used),
  };
}
