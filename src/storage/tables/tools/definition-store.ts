// The definitions that MCP servers offer, and the decisions about them, in the database.
import type { AuditEvent } from "../../../domain/audit.ts";
import type { DefinitionPage, DefinitionStore, ToolDefinition } from "../../../domain/tools/tool-definition.ts";
import type { Database } from "../../sql/database.ts";
import { added, available } from "../../sql/outage.ts";
import { integer, table, text, words } from "../../sql/table.ts";
import { changeRouting } from "../routing-change.ts";

const definitions = table<ToolDefinition>({
  server: text,
  kind: text,
  name: text,
  state: text,
  approvedDigest: text,
  approved: text,
  seen: text,
  approvedOthers: words,
  refused: words,
  seenAt: integer,
  decidedAt: integer,
  decidedBy: text,
});

export class SqlDefinitionStore implements DefinitionStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  listDefinitions(server: string): Promise<ToolDefinition[]> {
    return available(
      definitions.all(this.#db`SELECT * FROM tool_definitions WHERE server = ${server} ORDER BY kind, name`),
    );
  }

  findDefinition(
    server: string,
    { kind, name }: Pick<ToolDefinition, "kind" | "name">,
  ): Promise<ToolDefinition | undefined> {
    return available(
      definitions.first(this.#db`
        SELECT * FROM tool_definitions WHERE server = ${server} AND kind = ${kind} AND name = ${name}`),
    );
  }

  pageDefinitions(server: string, { after, limit, isWaiting }: DefinitionPage): Promise<ToolDefinition[]> {
    const db = this.#db;
    const behind = after === undefined ? db`` : db`AND (kind, name) > (${after.kind}, ${after.name})`;
    const waiting = isWaiting ? db`AND state IN ('pending', 'changed')` : db``;
    return available(
      definitions.all(db`
        SELECT * FROM tool_definitions WHERE server = ${server} AND name <> '' ${behind} ${waiting}
        ORDER BY kind, name LIMIT ${limit}`),
    );
  }

  async countWaiting(): Promise<ReadonlyMap<string, number>> {
    const rows: { server: string; count: number | string }[] = await available(this.#db`
      SELECT server, count(*) AS count FROM tool_definitions WHERE state IN ('pending', 'changed') GROUP BY server`);
    return new Map(rows.map(({ server, count }) => [server, Number(count)]));
  }

  async putSeen(seen: readonly ToolDefinition[]): Promise<void> {
    await added(this.#db, async (tx) => {
      for (const one of seen) {
        // Another replica may have just stored the same definition, or an operator decided about it.
        await tx`
          INSERT INTO tool_definitions ${tx(definitions.row(one))}
          ON CONFLICT (server, kind, name) DO UPDATE
          SET seen = excluded.seen, seen_at = excluded.seen_at, state = excluded.state,
            approved = CASE excluded.state WHEN 'approved' THEN excluded.approved ELSE tool_definitions.approved END,
            approved_digest = CASE excluded.state
              WHEN 'approved' THEN excluded.approved_digest ELSE tool_definitions.approved_digest END
          WHERE NOT (excluded.state = 'approved' AND tool_definitions.state = 'refused')
            AND (tool_definitions.seen <> excluded.seen
              OR (excluded.state = 'approved' AND tool_definitions.state IN ('pending', 'changed')))`;
      }
    });
  }

  decide(definition: ToolDefinition, seen: string, event: AuditEvent): Promise<boolean> {
    const { server, kind, name } = definition;
    const row = definitions.part(
      definition,
      ...(["state", "seen", "seenAt", "approvedDigest", "approved", "approvedOthers", "refused"] as const),
      ...(["decidedAt", "decidedBy"] as const),
    );
    return changeRouting(this.#db, event, async (tx) => {
      const changed: unknown[] = await tx`
        UPDATE tool_definitions SET ${tx(row)}
        WHERE server = ${server} AND kind = ${kind} AND name = ${name} AND seen = ${seen} RETURNING name`;
      return changed.length > 0;
    });
  }
}
