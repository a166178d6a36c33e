// Signing keys in real databases of both kinds: each key has one successor, whichever process is first.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { SigningKey } from "../../domain/people/signing-key.ts";
import { SqlSigningKeyStore } from "./signing-key-store.ts";

let opened: TestDatabase;
let stores: SqlSigningKeyStore[];

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    stores = [opened.db, await opened.openAgain()].map((db) => new SqlSigningKeyStore(db));
  });

  afterEach(() => opened.close());

  const key = (id: string, at: number): SigningKey => ({
    ...{ id, publicJwk: { kty: "EC", x: "ü'\"" }, sealedPrivateJwk: "v1.sealed" },
    ...{ createdAt: at, activeAt: at + 5, retiresAt: null },
  });

  test("reads back signing keys as stored, oldest first, without retired ones", async () => {
    const [store, other] = stores as [SqlSigningKeyStore, SqlSigningKeyStore];
    expect(await store.addSigningKey(key("b", 10), undefined, [])).toBe(true);
    expect(await store.addSigningKey(key("a", 20), { id: "b", retiresAt: 100 }, [])).toBe(true);
    expect(await other.listSigningKeys(99)).toEqual([{ ...key("b", 10), retiresAt: 100 }, key("a", 20)]);
    expect(await other.listSigningKeys(100)).toEqual([key("a", 20)]);
  });

  /** Calls `addSigningKey` in a separate process, at the same moment as other processes, and returns its result. */
  async function addElsewhere(key: SigningKey, predecessor: unknown, atMs: number): Promise<boolean> {
    const script = `
    import { SqlSigningKeyStore } from ${JSON.stringify(join(import.meta.dir, "signing-key-store.ts"))};
    const [key, predecessor, atMs] = JSON.parse(process.argv.at(-1));
    const store = new SqlSigningKeyStore(await ${opened.openingCode});
    while (Date.now() < atMs) {}
    console.log(await store.addSigningKey(key, predecessor ?? undefined, []));
    process.exit();`;
    const argument = JSON.stringify([key, predecessor ?? null, atMs]);
    const child = Bun.spawn([process.execPath, "-e", script, argument], { stdout: "pipe", stderr: "inherit" });
    const text = await new Response(child.stdout).text();
    expect(["true\n", "false\n"]).toContain(text);
    return text === "true\n";
  }

  test("lets one of several processes add the first signing key or a successor", async () => {
    const [store] = stores as [SqlSigningKeyStore];
    const race = (predecessor: { id: string; retiresAt: number } | undefined, name: string) =>
      Promise.all([0, 1, 2].map((i) => addElsewhere(key(`${name}${i}`, 10), predecessor, Date.now() + 300)));
    expect((await race(undefined, "first")).filter(Boolean)).toHaveLength(1);
    const [first] = (await store.listSigningKeys(0)) as [SigningKey];
    expect((await race({ id: first.id, retiresAt: 50 }, "second")).filter(Boolean)).toHaveLength(1);
    expect(await store.listSigningKeys(0)).toHaveLength(2);
  });

  test("adds no successor to a missing signing key", async () => {
    const [store] = stores as [SqlSigningKeyStore];
    expect(await store.addSigningKey(key("b", 20), { id: "a", retiresAt: 100 }, [])).toBe(false);
    expect(await store.listSigningKeys(0)).toEqual([]);
  });
});
