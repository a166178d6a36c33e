// Contents of tool calls in the database, each sealed for its own row.
import type { ChatOwner } from "../../../domain/models/stored-chat.ts";
import type { SealFor } from "../../../domain/seal.ts";
import type { SaidInCall, ToolContent, ToolContentStore } from "../../../domain/tools/tool-content.ts";
import type { Database } from "../../sql/database.ts";
import { Erasing } from "../../sql/erasing.ts";
import { added, reached, written } from "../../sql/outage.ts";

const what = "The content of calls of tools";

export class SqlToolContents implements ToolContentStore {
  readonly #db: Database;
  readonly #sealFor: SealFor;
  readonly #erasing: Erasing;

  constructor(db: Database, sealFor: SealFor) {
    this.#db = db;
    this.#sealFor = sealFor;
    this.#erasing = new Erasing(db);
  }

  async insert(contents: readonly ToolContent[]): Promise<void> {
    const rows = contents.map(({ arguments: asked, result, ...content }) => ({
      request_id: content.requestId,
      account_id: content.accountId,
      environment: content.environment,
      app_id: content.appId,
      person_id: content.personId,
      expires_at: content.expiresAt,
      content: this.#sealOf(content.requestId).seal(JSON.stringify({ arguments: asked, result })),
    }));
    const statement = (tx: Database) => tx`INSERT INTO tool_contents ${tx(rows)} ON CONFLICT (request_id) DO NOTHING`;
    await reached(what, added(this.#db, statement));
  }

  async find(owner: ChatOwner, requestId: string, nowSeconds: number): Promise<SaidInCall | undefined> {
    const { accountId, environment, appId, personId } = owner;
    const db = this.#db;
    const [row]: { content: string }[] = await reached(
      what,
      db`
        SELECT content FROM tool_contents
        WHERE request_id = ${requestId} AND account_id = ${accountId} AND environment = ${environment}
          AND expires_at > ${nowSeconds}
          ${appId === null ? db`` : db`AND app_id = ${appId}`}
          ${personId === null ? db`` : db`AND person_id = ${personId}`}`,
    );
    const text = row && this.#sealOf(requestId).open(row.content);
    return text === undefined ? undefined : (JSON.parse(text) as SaidInCall);
  }

  deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    return written(this.#db, async (tx) => {
      const rows: unknown[] = await tx`
        DELETE FROM tool_contents WHERE request_id IN (
          SELECT request_id FROM tool_contents WHERE expires_at <= ${nowSeconds} ORDER BY expires_at LIMIT ${limit})
        RETURNING request_id`;
      if (rows.length > 0) this.#erasing.soon();
      return rows.length;
    });
  }

  #sealOf(requestId: string) {
    return this.#sealFor(`tool_contents.${requestId}`);
  }
}
