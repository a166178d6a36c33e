// The secret behind keys and seals is replaced without ending a key, whether servers share it or keep it in a file.
import { afterEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { startHeadrace, type TestServer, until } from "../../tests/support/headrace.ts";
import { long } from "../../tests/support/long.ts";
import { freshDatabase } from "../../tests/support/postgres.ts";
import { withDatabaseOf } from "../maintenance/data-directory.ts";
import { claimSecret } from "../maintenance/installation-secret.ts";
import { secretStatus } from "../maintenance/replace-secret.ts";
import { SecretRotation } from "../maintenance/secret-rotation.ts";
import { ForwardVerifier, signForward } from "../nodes/forward-signature.ts";

const nowSeconds = () => Math.floor(Date.now() / 1000);
const newHex = () => randomBytes(32).toString("hex");
const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

interface Place {
  dataDir: string;
  databaseUrl: string | undefined;
}

async function newPlace(kind: "sqlite" | "postgres"): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-secret-"));
  directories.push(directory);
  return { dataDir: join(directory, "data"), databaseUrl: kind === "postgres" ? await freshDatabase() : undefined };
}

function envOf({ databaseUrl }: Place, ...secrets: string[]): Record<string, string> {
  return {
    ...(secrets.length === 0 ? {} : { HEADRACE_SECRET: secrets.join(",") }),
    ...(databaseUrl === undefined ? {} : { HEADRACE_DATABASE_URL: databaseUrl }),
  };
}

/** The address that tokens are issued for stays the same. */
const start = (place: Place, ...secrets: string[]): Promise<TestServer> =>
  startHeadrace({
    dataDir: place.dataDir,
    env: envOf(place, ...secrets),
    flags: { publicUrl: "http://localhost:7545" },
  });

const status = (place: Place, ...secretsHex: string[]) =>
  secretStatus({ ...place, secretsHex: secretsHex.length === 0 ? undefined : secretsHex, nowSeconds: nowSeconds() });

async function operatorKey(place: Place, ...secrets: string[]): Promise<string> {
  const args = ["operator-key", "--data-dir", place.dataDir, "--environment", "dev", "--quiet"];
  const { stdout, stderr } = await runCommand(args, { env: envOf(place, ...secrets) });
  if (stdout.trim() === "") throw new Error(stderr);
  return stdout.trim();
}

const as = (server: TestServer, key: string, path: string, body?: unknown) =>
  server.request(path, { headers: { authorization: `Bearer ${key}` }, ...(body === undefined ? {} : { body }) });

async function statusesOf(server: TestServer, keys: readonly string[]): Promise<number[]> {
  return Promise.all(keys.map(async (key) => (await as(server, key, "/v1/models")).status));
}

interface MadeKey {
  id: string;
  key: string;
}

async function makeKey(server: TestServer, operator: string, name: string): Promise<MadeKey> {
  const response = await as(server, operator, "/v1/keys", { name });
  expect(response.status).toBe(200);
  return (await response.json()) as MadeKey;
}

async function makeToken(server: TestServer, key: string): Promise<string> {
  const response = await as(server, key, "/v1/auth/token", { api_key: key });
  expect(response.status).toBe(200);
  return ((await response.json()) as { access_token: string }).access_token;
}

async function introspect(server: TestServer, clientId: string, secret: string): Promise<number> {
  const authorization = `Basic ${Buffer.from(`${clientId}:${secret}`).toString("base64")}`;
  const response = await fetch(`${server.url}/oauth/introspect`, {
    method: "POST",
    headers: { authorization, "content-type": "application/x-www-form-urlencoded" },
    body: "token=unknown",
  });
  return response.status;
}

describe.each(["sqlite", "postgres"] as const)("secrets on %s", (kind) => {
  // hardening: O6
  test("keeps keys, tokens, apps and sealed keys valid through rotations, and revoked ones revoked", async () => {
    const place = await newPlace(kind);
    const [one, two, three] = [newHex(), newHex(), newHex()];
    let keys: string[];
    let revoked: string;
    let token: string;
    let app: { id: string; secret: string };
    let operator: string;
    let idle: string;
    {
      await using server = await start(place, one);
      operator = await operatorKey(place, one);
      const made = [await makeKey(server, operator, "a"), await makeKey(server, operator, "b")];
      keys = made.map(({ key }) => key);
      idle = (await makeKey(server, operator, "idle")).key;
      const ended = await makeKey(server, operator, "ended");
      revoked = ended.key;
      const response = await server.request(`/v1/keys/${ended.id}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${operator}` },
      });
      expect(response.status).toBeLessThan(300);
      token = await makeToken(server, keys[0] ?? "");
      const registered = await as(server, operator, "/v1/apps", {
        name: "An app",
        type: "confidential",
        redirect_uris: ["https://app.example.com/back"],
      });
      expect(registered.status).toBe(200);
      const body = (await registered.json()) as { id: string; client_secret?: string; secret?: string };
      app = { id: body.id, secret: body.client_secret ?? body.secret ?? "" };
      const upstream = { name: "cloud", url: "http://127.0.0.1:9/v1", api_key: "cloud-key", discover: false };
      expect((await as(server, operator, "/v1/admin/upstreams", upstream)).status).toBe(200);
    }
    const worksAt = async (server: TestServer) => {
      expect(new Set(await statusesOf(server, [...keys, token]))).toEqual(new Set([200]));
      expect(await statusesOf(server, [revoked])).toEqual([401]);
      expect(await introspect(server, app.id, app.secret)).toBe(200);
      expect(await introspect(server, app.id, `${app.secret}x`)).toBe(401);
      expect(server.logged("upstream_key_unreadable")).toEqual([]);
      expect(server.logged("signing_key_unreadable")).toEqual([]);
      await server.governance.secretRotation.renewals.flush();
    };

    const rotations = [
      [one, two],
      [two, three],
    ] as const;
    // The second one is the same work again; starts with PostgreSQL take their time.
    for (const [before, after] of kind === "sqlite" || long ? rotations : rotations.slice(0, 1)) {
      {
        await using server = await start(place, before, after);
        await worksAt(server);
        expect((await status(place, before, after)).figures).toMatchObject({ keysUnderOlder: 0, sealedUnderOlder: 0 });
      }
      {
        await using server = await start(place, after, before);
        const { figures } = await status(place, after, before);
        expect(figures).toMatchObject({ accepted: 2, appSecretsUnderOlder: 1, sealedUnderOlder: 0 });
        expect(figures.keysUnderOlder).toBeGreaterThanOrEqual(4);
        await worksAt(server);
        expect(await statusesOf(server, [operator, idle])).toEqual([200, 200]);
        await server.governance.secretRotation.renewals.flush();
        const left = await status(place, after, before);
        // The first key of the server, which nobody uses.
        const [older, dropped] = before === one ? [1, 0] : [0, 1];
        expect(left.figures).toMatchObject({ keysUnderOlder: older, keysUnderDropped: dropped });
        expect(left.figures).toMatchObject({ appSecretsUnderOlder: 0, sealedUnderOlder: 0 });
        expect(left.keys.map(({ name }) => name)).toEqual([server.firstKey.record.name]);
        keys.push((await makeKey(server, operator, "made meanwhile")).key);
      }
      {
        await using server = await start(place, after);
        await worksAt(server);
        const reported = await until(() => server.logged("keys_under_dropped_secret")[0], "what is refused is told");
        expect(reported).toMatchObject({ level: "warn", keys: 1, app_secrets: 0 });
        const system = (await (await as(server, operator, "/v1/admin/system")).json()) as { secret: unknown };
        expect(system.secret).toMatchObject({ accepted: 1, keys_under_old: 0, keys_under_dropped: 1 });
      }
    }
  });

  // hardening: O6
  test("refuses a secret unknown to the database, also if the old one was dropped too early", async () => {
    const place = await newPlace(kind);
    const [one, two] = [newHex(), newHex()];
    await using _ = await start(place, one);
    await _.close();
    const refused = start(place, two).then(
      () => "started",
      (error: Error) => error.message,
    );
    expect(await refused).toContain("The secret is not the one with which this database was set up");
    await (await start(place, one, two)).close();
    expect(await start(place, two).catch((error: Error) => error.message)).toContain("is not the one");
  });

  test("does not start without a secret that sealed data still needs", async () => {
    const place = await newPlace(kind);
    const [one, two] = [newHex(), newHex()];
    const upstream = { name: "late", url: "http://127.0.0.1:9/v1", api_key: "cloud-key", discover: false };
    const older = await start(place, one, two);
    const operator = await operatorKey(place, one);
    // The claim goes by hand, as a replica would make it that was not replaced yet: SQLite has one process at a time.
    const ring = [Buffer.from(two, "hex"), Buffer.from(one, "hex")] as const;
    await withDatabaseOf(place, async (db) => {
      const clock = { nowSeconds, monotonicMs: () => performance.now() };
      await new SecretRotation({ db, secrets: ring, clock, log: { info() {}, warn() {}, error() {} } }).reseal();
      expect(await claimSecret(db, ring, nowSeconds())).toBe(true);
    });
    expect((await as(older, operator, "/v1/admin/upstreams", upstream)).status).toBe(200);
    await older.close();
    expect((await status(place, two, one)).figures).toMatchObject({ sealedUnderOlder: 1 });
    const message = await start(place, two).then(
      () => "started",
      (error: Error) => error.message,
    );
    expect(message).toContain("The key of 1 upstream is sealed under a secret that HEADRACE_SECRET");
    await (await start(place, two, one)).close();
    await using server = await start(place, two);
    expect(server.logged("upstream_key_unreadable")).toEqual([]);
  });
});

// hardening: O6
test("lets replicas with two secrets in common accept each other's keys and forwards", async () => {
  const place = await newPlace("postgres");
  const [one, two] = [newHex(), newHex()];
  const other = { ...place, dataDir: `${place.dataDir}-2` };
  await using before = await start(place, one, two);
  const operator = await operatorKey(place, one, two);
  const early = await makeKey(before, operator, "early");
  await using after = await start(other, two, one);
  const [atBefore, atAfter] = [
    await makeKey(before, operator, "at before"),
    await makeKey(after, operator, "at after"),
  ];
  const keys = [
    early.key,
    atBefore.key,
    atAfter.key,
    await makeToken(before, early.key),
    await makeToken(after, early.key),
  ];
  for (const server of [before, after]) expect(await statusesOf(server, keys)).toEqual([200, 200, 200, 200, 200]);
  await after.governance.secretRotation.renewals.flush();
  // It found what the other one had renewed, and does not turn it back.
  before.governance.authenticator.invalidate();
  expect(await statusesOf(before, keys)).toEqual([200, 200, 200, 200, 200]);
  await before.governance.secretRotation.renewals.flush();
  const { keys: left } = await status(place, two, one);
  expect(left.map(({ name }) => name)).not.toContain("early");
  expect(left.map(({ name }) => name)).not.toContain("at before");

  const request = { method: "POST", path: "/x", replicaId: "rep_1", about: "{}", bodyDigest: "00" };
  const clock = { nowSeconds, monotonicMs: () => performance.now() };
  const [keysBefore, keysAfter] = [before, after].map((one) => one.governance.keyFor("replica-forward-v1"));
  if (!keysBefore || !keysAfter) throw new Error("no keys");
  const signed = signForward(request, keysAfter, clock);
  expect(new ForwardVerifier(keysBefore, clock).verify(request, signed)).toBe(true);
  expect(new ForwardVerifier(keysAfter, clock).verify(request, signForward(request, keysBefore, clock))).toBe(true);
});

describe("the secret file in the data directory", () => {
  const secret = (place: Place, ...args: string[]) =>
    runCommand(["secret", ...args, "--data-dir", place.dataDir], { env: {} });
  const lines = (place: Place) => readFileSync(join(place.dataDir, "secret"), "utf8").trim().split("\n");

  // hardening: O6
  test("replaces the secret file by rotate, restart and forget-old, with every key still valid", async () => {
    const place = await newPlace("sqlite");
    let key: string;
    {
      await using server = await start(place);
      key = server.key;
      const [before] = lines(place);
      expect(await secret(place, "rotate")).toMatchObject({ code: 0 });
      expect(lines(place)).toHaveLength(2);
      expect(lines(place)[1]).toBe(before ?? "");
      expect(statSync(join(place.dataDir, "secret")).mode & 0o777).toBe(0o600);
      // The server that runs does not know it yet: a key made beside it is made under the one that it has.
      const operator = await operatorKey(place);
      expect(await statusesOf(server, [key, operator])).toEqual([200, 200]);
      expect((await secret(place, "status")).stdout).toContain("the newest is used once the server was restarted");
      expect(await secret(place, "forget-old")).toMatchObject({ code: 1 });
    }
    {
      await using server = await start(place);
      const early = await secret(place, "forget-old");
      expect(early.stderr).toContain("2 keys, 0 secrets of apps and 0 sealed values are still under an older secret");
      expect(await statusesOf(server, [key])).toEqual([200]);
      await server.governance.secretRotation.renewals.flush();
      const reported = JSON.parse((await secret(place, "status", "--json")).stdout) as Record<string, unknown>;
      expect(reported).toMatchObject({ accepted: 2, waits_for_restart: false, keys_under_old: 1, sealed_under_old: 0 });
      expect(await secret(place, "forget-old", "--force")).toMatchObject({ code: 0 });
      expect(lines(place)).toHaveLength(1);
    }
    await using server = await start(place);
    expect(await statusesOf(server, [key])).toEqual([200]);
  });

  test("does not change the secret file if HEADRACE_SECRET is set or the file is full", async () => {
    const place = await newPlace("sqlite");
    await (await start(place)).close();
    const env = { HEADRACE_SECRET: lines(place)[0] ?? "" };
    const refused = await runCommand(["secret", "rotate", "--data-dir", place.dataDir], { env });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("HEADRACE_SECRET");
    for (const code of [0, 0, 0, 1]) expect((await secret(place, "rotate")).code).toBe(code);
    expect(lines(place)).toHaveLength(4);
  });
});
