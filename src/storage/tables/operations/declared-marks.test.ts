// Marks of declared objects in real databases of both kinds.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import type { Acting } from "../../../domain/audit.ts";
import type { DeclaredMark } from "../../../domain/declared.ts";
import { SqlDeclaredMarks } from "./declared-marks.ts";

const by: Acting = { at: 1_800_000_000, actor: { type: "operator" }, accountId: null };
const mark: DeclaredMark = {
  ...{ kind: "account", name: "web-shop", targetId: "acct_1" },
  ...{ managedBy: "production", changedAt: 1_800_000_000 },
};

let opened: TestDatabase;
let marks: SqlDeclaredMarks;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    marks = new SqlDeclaredMarks(opened.db);
  });

  afterEach(async () => {
    await opened.close();
  });

  test("stores a mark only over the mark that its writer has read", async () => {
    expect(await marks.put(mark, undefined, by)).toBe(true);
    expect(await marks.put({ ...mark, targetId: "acct_2" }, undefined, by)).toBe(false);
    const freed = { ...mark, managedBy: null, changedAt: 1_800_000_009 };
    expect(await marks.put(freed, mark, by)).toBe(true);
    expect(await marks.put({ ...mark, managedBy: "other" }, mark, by)).toBe(false);
    expect(await marks.list()).toEqual([freed]);
  });

  test("removes a mark only while it names the same object", async () => {
    await marks.put(mark, undefined, by);
    await marks.remove({ ...mark, targetId: "acct_2" }, by);
    expect(await marks.list()).toEqual([mark]);
    await marks.remove(mark, by);
    expect(await marks.list()).toEqual([]);
  });
});
