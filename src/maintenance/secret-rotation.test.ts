// Digests come under the secret in use one by one, whoever dies meanwhile, and none is lost or turned back.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../tests/support/databases.ts";
import { keyRecordFor } from "../../tests/support/principal.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { keyDigest } from "../policy/credentials/key-digest.ts";
import { deriveKey } from "../storage/files/secret-file.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlAccountStore } from "../storage/tables/account-store.ts";
import { SqlKeyStore } from "../storage/tables/key-store.ts";
import { SqlSecretStore } from "../storage/tables/secret-store.ts";
import { checkOf, claimSecret, idOfSecret } from "./installation-secret.ts";
import { countUnderSecrets } from "./secret-rotation.ts";

const now = 1_800_000_000;
const [older, newer] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const secretOf = (i: number) => `sk_live_hr_${String(i).padStart(36, "0")}`;
const digestUnder = (secret: Uint8Array, i: number) => keyDigest(secretOf(i), deriveKey(secret, "api-key-pepper-v1"));

let opened: TestDatabase;
let db: Database;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
  });

  afterEach(() => opened.close());

  async function addKeys(count: number, under: Uint8Array, first = 0): Promise<void> {
    const accountId = await new SqlAccountStore(db).ensureFirstAccount(now);
    const keys = new SqlKeyStore(db, { secretId: idOfSecret(under) });
    for (let i = first; i < first + count; i++) {
      const record = keyRecordFor({ id: `key_${i}`, accountId, environment: "live", digest: digestUnder(under, i) });
      const event = {
        id: `audit_${i}`,
        at: now,
        action: "key.created",
        actor: { type: "operator" },
        accountId,
      } as const;
      await keys.insertKey(record, { ...event, targetId: record.id, clientAddress: null, requestId: null, detail: {} });
    }
  }

  const renewalOf = (i: number, from = older, to = newer) => ({
    ...{ table: "api_keys" as const, id: `key_${i}`, from: digestUnder(from, i), to: digestUnder(to, i) },
  });

  const countAt = (...secrets: [Uint8Array, ...Uint8Array[]]) => countUnderSecrets(db, secrets as KeyRing, now);

  // hardening: O6
  test("leaves every key under either secret if the process is killed during a rotation", async () => {
    const count = 400;
    expect(await claimSecret(db, [older], now)).toBe(true);
    await addKeys(count, older);
    expect(await claimSecret(db, [newer, older], now)).toBe(true);
    const renewals = Array.from({ length: count }, (_, i) => renewalOf(i));
    const script = `
      const db = await ${opened.openingCode};
      const { SqlSecretStore } = await import(${JSON.stringify(join(import.meta.dir, "../storage/tables/secret-store.ts"))});
      const store = new SqlSecretStore(db);
      const renewals = ${JSON.stringify(renewals)};
      for (let i = 0; i < renewals.length; i += 10) {
        await store.renewDigests(renewals.slice(i, i + 10), ${JSON.stringify(checkOf(newer))});
        if (i === 50) console.log("begun");
        // Far from its end when it is killed, however busy the machine.
        if (i >= 50) await Bun.sleep(100);
      }
      console.log("done");`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
    const { value } = await child.stdout.getReader().read();
    child.kill("SIGKILL");
    await child.exited;
    expect(new TextDecoder().decode(value)).toBe("begun\n");
    const { keysUnderOlder, keysUnderDropped } = await countAt(newer, older);
    expect(keysUnderOlder).toBeGreaterThan(0);
    expect(keysUnderOlder).toBeLessThanOrEqual(count - 60);
    expect(keysUnderDropped).toBe(0);
    const keys = new SqlKeyStore(db);
    const found = async () => {
      const ids: (string | undefined)[] = [];
      for (let i = 0; i < count; i++) {
        ids.push((await keys.findChainByDigest(digestUnder(newer, i), digestUnder(older, i)))?.keys[0].id);
      }
      return ids;
    };
    const all = Array.from({ length: count }, (_, i) => `key_${i}`);
    expect(await found()).toEqual(all);
    // Each row really is of the secret that it names.
    const rows: { id: string; digest: string; secret_id: string }[] =
      await db`SELECT id, digest, secret_id FROM api_keys`;
    for (const { id, digest, secret_id: secretId } of rows) {
      const under = secretId === idOfSecret(newer) ? newer : older;
      expect(digest).toBe(digestUnder(under, Number(id.slice(4))));
    }
    await new SqlSecretStore(db).renewDigests(renewals, checkOf(newer));
    expect(await countAt(newer)).toMatchObject({ keysUnderOlder: 0, keysUnderDropped: 0 });
    expect(await found()).toEqual(all);
  });

  test("does not let a process with a retired secret revert keys", async () => {
    await claimSecret(db, [older], now);
    await addKeys(2, older);
    await claimSecret(db, [newer, older], now);
    const store = new SqlSecretStore(db);
    await store.renewDigests([renewalOf(0)], checkOf(newer));
    await store.renewDigests([renewalOf(0, newer, older)], checkOf(older));
    expect(await countAt(newer, older)).toMatchObject({ keysUnderOlder: 1 });
    expect(await countAt(newer)).toMatchObject({ keysUnderOlder: 0, keysUnderDropped: 1 });
  });

  test("assigns keys without a recorded secret to the secret of their time", async () => {
    await claimSecret(db, [older], now);
    await addKeys(3, older);
    await db`UPDATE api_keys SET secret_id = NULL`;
    await db`DELETE FROM installation WHERE name = 'first_secret'`;
    expect(await claimSecret(db, [newer, older], now)).toBe(true);
    await addKeys(2, newer, 3);
    expect(await countAt(newer, older)).toMatchObject({ keysUnderOlder: 3, keysUnderDropped: 0 });
  });

  test("does not count ended keys as needing an older secret", async () => {
    await claimSecret(db, [older], now);
    await addKeys(4, older);
    await claimSecret(db, [newer, older], now);
    await db`UPDATE api_keys SET revoked = 1 WHERE id = 'key_0'`;
    await db`UPDATE api_keys SET expires_at = ${now} WHERE id = 'key_1'`;
    await db`UPDATE api_keys SET revoked_at = ${now - 1} WHERE id = 'key_2'`;
    expect(await countAt(newer, older)).toMatchObject({ keysUnderOlder: 1 });
  });

  databases.only("postgres", "lets one of two first starts with different secrets decide", async () => {
    const outcomes = await Promise.all([
      claimSecret(db, [older], now),
      claimSecret(await opened.openAgain(), [newer], now),
    ]);
    expect(outcomes.toSorted()).toEqual([false, true]);
  });
});
