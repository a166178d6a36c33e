// Uploads in parts, in the database.
import type { Upload, UploadPart, UploadStatus, UploadStore } from "../../../domain/files/stored-file.ts";
import type { ResponseOwner } from "../../../domain/models/stored-response.ts";
import { type Database, writing } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { integer, table, text } from "../../sql/table.ts";
import { AccountBytes, countedBytes, type FileSum, minCountedBytes } from "./account-bytes.ts";
import { madeFor, makerColumns, sumOf } from "./file-store.ts";

const uploads = table<Upload>({
  id: text,
  ...makerColumns,
  filename: text,
  purpose: text,
  bytes: integer,
  mimeType: text,
  status: text,
  createdAt: integer,
  expiresAt: integer,
  keepSeconds: integer,
  fileId: text,
});
const uploadParts = table<UploadPart>({ id: text, uploadId: text, bytes: integer, createdAt: integer });

/** Seconds for which an ended upload can be read. */
const endedSeconds = 86_400;

export class SqlUploadStore implements UploadStore {
  readonly #db: Database;
  readonly #bytes = new AccountBytes();

  constructor(db: Database) {
    this.#db = db;
  }

  create(upload: Upload, maxBytes: number): Promise<boolean> {
    return available(
      writing(this.#db, async (tx) => {
        const { accountId, createdAt, bytes } = upload;
        const read = () => sumWithUploads(tx, accountId, createdAt);
        if (!(await this.#bytes.take(accountId, countedBytes(bytes), maxBytes, read))) return false;
        await tx`INSERT INTO uploads ${tx(uploads.row(upload))}`;
        return true;
      }),
    );
  }

  find(owner: ResponseOwner, id: string): Promise<Upload | undefined> {
    return available(
      uploads.first(this.#db`SELECT * FROM uploads AS c WHERE id = ${id} AND ${madeFor(this.#db, owner)}`),
    );
  }

  addPart(part: UploadPart, nowSeconds: number): Promise<boolean> {
    return available(
      writing(this.#db, async (tx) => {
        const [row]: { bytes: number | string; so_far: number | string | null }[] = await tx`
          SELECT bytes, (SELECT SUM(bytes) FROM upload_parts WHERE upload_id = ${part.uploadId}) AS so_far
          FROM uploads WHERE id = ${part.uploadId} AND status = 'pending' AND expires_at > ${nowSeconds}`;
        if (!row || Number(row.so_far ?? 0) + part.bytes > Number(row.bytes)) return false;
        await tx`INSERT INTO upload_parts ${tx(uploadParts.row(part))}`;
        return true;
      }),
    );
  }

  parts(uploadId: string): Promise<UploadPart[]> {
    return available(uploadParts.all(this.#db`SELECT * FROM upload_parts WHERE upload_id = ${uploadId}`));
  }

  async dropPart(id: string): Promise<void> {
    await this.forgetParts([id]);
  }

  async end(id: string, { status, fileId }: { status: UploadStatus; fileId: string | null }): Promise<boolean> {
    const rows: unknown[] = await written(
      this.#db,
      (tx) => tx`
        UPDATE uploads SET status = ${status}, file_id = ${fileId} WHERE id = ${id} AND status = 'pending' RETURNING id`,
    );
    return rows.length > 0;
  }

  async goneParts(nowSeconds: number, limit: number): Promise<string[]> {
    const rows: { id: string }[] = await available(this.#db`
      SELECT p.id FROM uploads AS u JOIN upload_parts AS p ON p.upload_id = u.id
      WHERE u.expires_at <= ${nowSeconds} OR u.status <> 'pending' LIMIT ${limit}`);
    return rows.map(({ id }) => id);
  }

  async forgetParts(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await written(this.#db, (tx) => tx`DELETE FROM upload_parts WHERE id IN ${tx([...ids])}`);
  }

  async forgetEnded(nowSeconds: number): Promise<void> {
    const before = nowSeconds - endedSeconds;
    await written(
      this.#db,
      (tx) => tx`
        DELETE FROM uploads WHERE expires_at <= ${before}
          AND NOT EXISTS (SELECT 1 FROM upload_parts WHERE upload_id = uploads.id)`,
    );
  }
}

/** Returns the bytes of an account's files and the announced bytes of its open uploads. The sum reads only indexes. */
export async function sumWithUploads(tx: Database, accountId: string, nowSeconds: number): Promise<FileSum> {
  const { bytes, files } = await sumOf(tx, accountId);
  const [row]: { bytes: number | string | null; uploads: number | string }[] = await tx`
    SELECT SUM(CASE WHEN bytes < ${minCountedBytes} THEN ${minCountedBytes} ELSE bytes END) AS bytes, COUNT(*) AS uploads
    FROM uploads WHERE account_id = ${accountId} AND status = 'pending' AND expires_at > ${nowSeconds}`;
  return { bytes: bytes + Number(row?.bytes ?? 0), files: files + Number(row?.uploads ?? 0) };
}
