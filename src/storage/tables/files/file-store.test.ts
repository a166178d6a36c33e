import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { explained } from "../../../../tests/support/query-plans.ts";
import type { FilePage, StoredFile, Upload } from "../../../domain/files/stored-file.ts";
import { minCountedBytes } from "./account-bytes.ts";
import { SqlFileStore } from "./file-store.ts";
import { SqlUploadStore, sumWithUploads } from "./upload-store.ts";

const now = 1_800_000_000;
const maker = {
  accountId: "acct_1",
  environment: "live",
  keyId: "key_1",
  appId: null,
  personId: null,
  madeBy: null,
} as const;
const times = { createdAt: now, expiresAt: now + 86_400 };
let opened: TestDatabase;

const fileOf = (id: string, bytes: number): StoredFile => {
  return { ...maker, ...times, id, bytes, purpose: "user_data", filename: "a" };
};
const uploadOf = (id: string, bytes: number): Upload => {
  const rest = { filename: "a", purpose: "user_data", mimeType: "text/plain", keepSeconds: 86_400 } as const;
  return { ...maker, ...times, ...rest, id, bytes, status: "pending", fileId: null };
};

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
  });
  afterEach(async () => {
    await opened.close();
  });

  test("counts small files and uploads as a least size each, so that an account has a bounded number", async () => {
    const files = new SqlFileStore(opened.db);
    const uploads = new SqlUploadStore(opened.db);
    const maxBytes = 4 * minCountedBytes;
    expect(await files.begin(fileOf("file-1", 0), maxBytes)).toBe(true);
    expect(await files.finish(fileOf("file-1", 1), maxBytes)).toBe(true);
    expect(await files.begin(fileOf("file-2", 1), maxBytes)).toBe(true);
    expect(await uploads.create(uploadOf("upload_1", 1), maxBytes)).toBe(true);
    expect(await uploads.create(uploadOf("upload_2", minCountedBytes + 1), maxBytes)).toBe(false);
    expect(await uploads.create(uploadOf("upload_2", 1), maxBytes)).toBe(true);
    expect(await uploads.create(uploadOf("upload_3", 0), maxBytes)).toBe(false);
    expect(await files.begin(fileOf("file-3", 1), 2 * minCountedBytes)).toBe(false);
  });

  test("finds the few files of one purpose among many others, and lets other work run in between", async () => {
    const files = new SqlFileStore(opened.db);
    const add = async (id: string, purpose: StoredFile["purpose"]) => {
      await files.begin({ ...fileOf(id, 1), purpose }, 1e12);
      await files.finish({ ...fileOf(id, 1), purpose }, 1e12);
    };
    await add("file-a", "vision");
    await add("file-b", "user_data");
    const row = opened.db`SELECT account_id, environment, key_id, purpose, filename, bytes, created_at, expires_at, state
      FROM stored_files WHERE id = 'file-b'`;
    const [{ ...columns } = {}] = await row;
    const rows = Array.from({ length: 500 }, (_, n) => ({ ...columns, id: `file-m${n}` }));
    for (let n = 0; n < 10; n++) {
      const some = rows.map((one) => ({ ...one, id: `${one.id}-${n}` }));
      await opened.db.begin((tx) => tx`INSERT INTO stored_files ${tx(some)}`);
    }
    await add("file-z", "vision");
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const idsOf = async (page: Partial<FilePage>) => {
      const whole = { after: undefined, limit: 10, order: "asc", purpose: "vision", ...page } as const;
      return (await files.list(maker, whole, now))?.map(({ id }) => id);
    };
    expect(await idsOf({})).toEqual(["file-a", "file-z"]);
    expect(turns).toBeGreaterThan(0);
    clearInterval(timer);
    expect(await idsOf({ order: "desc" })).toEqual(["file-z", "file-a"]);
    expect(await idsOf({ after: "file-a" })).toEqual(["file-z"]);
    expect(await idsOf({ purpose: "user_data", limit: 4_500 })).toHaveLength(4_500);
  });

  test("continues a list after a file that was deleted since, but not after another account's file", async () => {
    const files = new SqlFileStore(opened.db);
    for (const id of ["file-a", "file-b", "file-c"]) {
      await files.begin(fileOf(id, 1), Number.MAX_SAFE_INTEGER);
      await files.finish(fileOf(id, 1), Number.MAX_SAFE_INTEGER);
    }
    await files.hide(maker, "file-b", now);
    const page = { after: "file-b", limit: 10, order: "asc", purpose: undefined } as const;
    expect((await files.list(maker, page, now))?.map(({ id }) => id)).toEqual(["file-c"]);
    expect(await files.list({ ...maker, accountId: "acct_2" }, page, now)).toBeUndefined();
  });

  databases.only("sqlite", "finds files to delete by indexes alone", async () => {
    const plans = new Set<string>();
    await new SqlFileStore(explained(opened.db, plans)).gone(now, 10);
    expect([...plans].toSorted()).toEqual([
      "SCAN stored_files USING COVERING INDEX stored_files_gone",
      "SEARCH stored_files USING INDEX stored_files_by_expiry (expires_at<?)",
    ]);
  });

  databases.only("sqlite", "sums an account's files and uploads from indexes alone", async () => {
    const plans = new Set<string>();
    const db = explained(opened.db, plans);
    await sumWithUploads(db, "acct_1", now);
    for (const table of ["stored_files", "uploads"]) {
      expect([...plans].join("\n")).toContain(`${table} USING COVERING INDEX ${table}_by_size`);
    }
  });
});
