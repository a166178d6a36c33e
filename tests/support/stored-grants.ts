// What a server's database has of grants and refresh tokens, and what its audit log says of them.
import { Database } from "bun:sqlite";
import { join } from "node:path";

export interface StoredGrant {
  id: string;
  appId: string;
  revoked: boolean;
  /** That were not used. */
  liveTokens: number;
  tokens: number;
  /** Actions in the order in which they were written. */
  events: string[];
}

/** In the order in which they were made. Of a server that runs as well. */
export function storedGrants(dataDir: string): StoredGrant[] {
  const db = new Database(join(dataDir, "headrace.db"));
  try {
    const grants = db
      .query<{ id: string; app_id: string; revoked: number; live: number; tokens: number }, []>(
        `SELECT id, app_id, revoked,
           (SELECT count(*) FROM refresh_tokens WHERE grant_id = api_keys.id AND used_at IS NULL) AS live,
           (SELECT count(*) FROM refresh_tokens WHERE grant_id = api_keys.id) AS tokens
         FROM api_keys WHERE kind = 'grant' ORDER BY id`,
      )
      .all();
    const events = db
      .query<{ target_id: string; action: string }, []>(
        "SELECT target_id, action FROM audit_log WHERE action LIKE 'grant.%' ORDER BY id",
      )
      .all();
    return grants.map(({ id, app_id, revoked, live, tokens }) => ({
      ...{ id, appId: app_id, revoked: revoked === 1, liveTokens: live, tokens },
      events: events.filter(({ target_id }) => target_id === id).map(({ action }) => action),
    }));
  } finally {
    db.close();
  }
}
