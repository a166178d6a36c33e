// Schedules of key rotations in real databases of both kinds: which keys are due, and that a rotation begins once.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { keyRecordFor } from "../../../../tests/support/principal.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import type { ApiKeyRecord } from "../../../domain/principal.ts";
import { SqlAccountStore } from "../account-store.ts";
import { SqlKeyStore } from "../key-store.ts";
import { SqlKeyRotationStore } from "./key-rotation-store.ts";
import { SqlKeySurvey } from "./key-survey.ts";

const now = 1_800_000_000;
const endsAt = now + 86_400;

let opened: TestDatabase;
let keys: SqlKeyStore;
let rotations: SqlKeyRotationStore;
let accountId: string;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    keys = new SqlKeyStore(opened.db);
    rotations = new SqlKeyRotationStore(opened.db);
    accountId = await new SqlAccountStore(opened.db).ensureFirstAccount(now);
  });
  afterEach(() => opened.close());

  const event = (): AuditEvent => ({
    ...{ id: `audit_${Bun.randomUUIDv7()}`, at: now, action: "key.rotation_due", actor: { type: "system" } },
    ...{ accountId, targetId: "key_1", clientAddress: null, requestId: null, detail: {} },
  });
  const record = (id: string, more: Partial<ApiKeyRecord> = {}) =>
    keyRecordFor({ id, accountId, limitId: id, digest: `d-${id}`, ...more });
  const add = (id: string, more: Partial<ApiKeyRecord> = {}) => keys.insertKey(record(id, more), event());
  const surveyed = async () => (await new SqlKeySurvey(opened.db).page("", now)).keys;

  test("applies the schedule of the key or of its account, whichever has fewer days", async () => {
    await add("key_1");
    await add("key_2");
    await rotations.set(accountId, { everyDays: 90, overlapSeconds: 7_200 }, event());
    await rotations.set("key_1", { everyDays: 30, overlapSeconds: 3_600 }, event());
    await rotations.set("key_2", { everyDays: 365, overlapSeconds: 3_600 }, event());
    const applied = (await surveyed()).map(({ id, everyDays, overlapSeconds }) => [id, everyDays, overlapSeconds]);
    expect(applied).toEqual([
      ["key_1", 30, 3_600],
      ["key_2", 90, 7_200],
    ]);
    await rotations.set(accountId, undefined, event());
    await rotations.set("key_1", undefined, event());
    expect(await rotations.find("key_1")).toBeUndefined();
    expect((await surveyed()).map(({ everyDays }) => everyDays)).toEqual([null, 365]);
  });

  test("applies the key's own schedule if that of its account has as many days", async () => {
    await add("key_1");
    await rotations.set(accountId, { everyDays: 90, overlapSeconds: 7_200 }, event());
    await rotations.set("key_1", { everyDays: 90, overlapSeconds: 3_600 }, event());
    expect(await surveyed()).toMatchObject([{ everyDays: 90, overlapSeconds: 3_600 }]);
  });

  test("rotates an operator's key only by its own schedule, and not by that of the account", async () => {
    await add("key_1", { scopes: ["chat:write", "admin:manage"] });
    await rotations.set(accountId, { everyDays: 1, overlapSeconds: 3_600 }, event());
    expect(await surveyed()).toMatchObject([{ everyDays: null, overlapSeconds: null }]);
    expect(await rotations.begin("key_1", endsAt, event())).toBe(false);
    await rotations.set("key_1", { everyDays: 30, overlapSeconds: 7_200 }, event());
    expect(await surveyed()).toMatchObject([{ everyDays: 30, overlapSeconds: 7_200 }]);
    expect(await rotations.begin("key_1", endsAt, event())).toBe(true);
  });

  test("begins a rotation once, however many processes try at the same time", async () => {
    await add("key_1");
    const begun = await Promise.all(Array.from({ length: 5 }, () => rotations.begin("key_1", endsAt, event())));
    expect(begun.filter(Boolean)).toHaveLength(1);
    expect((await keys.findChainById("key_1"))?.keys[0].revokedAt).toBe(endsAt);
    expect(await rotations.isDue("key_1")).toBe(true);
    expect(await surveyed()).toEqual([]);
  });

  test("hands out one successor, which does not end with the old key and keeps its limits", async () => {
    await add("key_1");
    await rotations.begin("key_1", endsAt, event());
    const fetched = await Promise.all(
      ["key_2", "key_3", "key_4"].map((id) => keys.rotateKey("key_1", record(id), now + 999_999, event())),
    );
    const successors = fetched.filter((key) => key !== undefined);
    expect(successors).toHaveLength(1);
    expect(successors[0]).toMatchObject({ limitId: "key_1", revokedAt: null, revoked: false });
    expect((await keys.findChainById("key_1"))?.keys[0].revokedAt).toBe(endsAt);
    expect(await rotations.isDue("key_1")).toBe(false);
  });

  test("begins no rotation of a key that was rotated or revoked", async () => {
    await add("key_1");
    await add("key_2");
    await keys.rotateKey("key_1", record("key_9"), now + 60, event());
    await keys.updateKey("key_2", { revokedAt: now }, event());
    expect(await rotations.begin("key_1", endsAt, event())).toBe(false);
    expect(await rotations.begin("key_2", endsAt, event())).toBe(false);
    expect(await rotations.isDue("key_1")).toBe(false);
  });
});
