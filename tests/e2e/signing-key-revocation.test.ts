// A signing key that somebody else has is replaced: what was signed by it is refused at once, on every replica.
import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeJwt, decodeProtectedHeader, importJWK, SignJWT } from "jose";
import { withDatabaseOf } from "../../src/maintenance/data-directory.ts";
import { unseal } from "../../src/policy/credentials/sealing.ts";
import { deriveKey } from "../../src/storage/files/secret-file.ts";
import { SqlSigningKeyStore } from "../../src/storage/tables/signing-key-store.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { freshDatabase } from "../support/postgres.ts";

const secret = randomBytes(32);
const publicUrl = "http://localhost:7545";

async function operatorOf(server: TestServer, env: Record<string, string>): Promise<string> {
  const args = ["operator-key", "--data-dir", server.dataDir, "--environment", "dev", "--quiet"];
  const { stdout, stderr } = await runCommand(args, { env });
  if (stdout.trim() === "") throw new Error(stderr);
  return stdout.trim();
}

const as = (server: TestServer, credential: string, path = "/v1/models", body?: unknown) =>
  server.request(path, { headers: { authorization: `Bearer ${credential}` }, ...(body === undefined ? {} : { body }) });

async function tokenOf(server: TestServer, key: string): Promise<string> {
  const response = await server.request("/v1/auth/token", { body: { api_key: key } });
  return ((await response.json()) as { access_token: string }).access_token;
}

/** A token as whoever got hold of the private key makes one. */
async function forged(server: TestServer, like: string): Promise<string> {
  const [leaked] = await withDatabaseOf({ dataDir: server.dataDir, databaseUrl: server.config.databaseUrl }, (db) =>
    new SqlSigningKeyStore(db).listSigningKeys(Math.floor(Date.now() / 1000)),
  );
  if (!leaked) throw new Error("no signing key");
  const jwk = JSON.parse(unseal(leaked.sealedPrivateJwk, deriveKey(secret, "signing-key-seal-v1"), leaked.id));
  return new SignJWT({ ...decodeJwt(like), jti: "tok_forged" })
    .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid: leaked.id })
    .sign(await importJWK(jwk, "ES256"));
}

describe("rotation of signing keys with revoke", () => {
  // hardening: O7
  test("ends all tokens at once on rotation with revoke, issues new ones, and revives none after a restart", async () => {
    const directory = mkdtempSync(join(tmpdir(), "headrace-revoke-"));
    const env = { HEADRACE_SECRET: secret.toString("hex") };
    const options = { env, dataDir: join(directory, "data"), flags: { publicUrl } };
    const first = await startHeadrace(options);
    const operator = await operatorOf(first, env);
    const old = await tokenOf(first, operator);
    const tokens = [old, await forged(first, old)];
    for (const token of tokens) expect((await as(first, token)).status).toBe(200);

    const plain = await as(first, operator, "/v1/admin/signing-keys/rotate", {});
    expect([plain.status, ((await plain.json()) as { state: string }).state]).toEqual([200, "upcoming"]);
    for (const token of tokens) expect((await as(first, token)).status).toBe(200);

    const rotated = await as(first, operator, "/v1/admin/signing-keys/rotate", { revoke: true });
    const key = (await rotated.json()) as { id: string; state: string };
    expect([rotated.status, key.state]).toEqual([200, "signing"]);
    for (const token of tokens) expect((await as(first, token)).status).toBe(401);
    const jwks = (await (await fetch(`${first.url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] };
    expect(jwks.keys.map(({ kid }) => kid)).toEqual([key.id]);
    const fresh = await tokenOf(first, operator);
    expect(decodeProtectedHeader(fresh).kid).toBe(key.id);
    expect((await as(first, fresh)).status).toBe(200);
    const audit = await as(first, operator, "/v1/admin/audit?action=signing_key.retired");
    const { data } = (await audit.json()) as { data: { detail: { revoked?: boolean } }[] };
    expect(data.filter(({ detail }) => detail.revoked)).toHaveLength(2);
    expect((await as(first, operator, "/v1/admin/signing-keys/rotate", { revoked: true })).status).toBe(400);
    await first.close();

    const second = await startHeadrace(options);
    for (const token of tokens) expect((await as(second, token)).status).toBe(401);
    expect((await as(second, fresh)).status).toBe(200);
    await second.close();
    rmSync(directory, { recursive: true, force: true });
  });

  // hardening: O7
  test("applies a rotation with revoke at another replica within the bound, despite its token cache", async () => {
    const env = { HEADRACE_SECRET: secret.toString("hex"), HEADRACE_DATABASE_URL: await freshDatabase() };
    await using here = await startHeadrace({ env, flags: { publicUrl } });
    await using there = await startHeadrace({ env, flags: { publicUrl } });
    const operator = await operatorOf(here, env);
    const old = await tokenOf(here, operator);
    const leaked = await forged(here, old);
    for (const server of [here, there]) expect((await as(server, leaked)).status).toBe(200);
    expect((await as(here, operator, "/v1/admin/signing-keys/rotate", { revoke: true })).status).toBe(200);
    expect((await as(here, leaked)).status).toBe(401);
    await until(async () => (await as(there, leaked)).status === 401, "the other replica refuses it", 10_000);
    expect((await as(there, old)).status).toBe(401);
    expect((await as(there, await tokenOf(here, operator))).status).toBe(200);
    expect((await as(here, await tokenOf(there, operator))).status).toBe(200);
  });
});
