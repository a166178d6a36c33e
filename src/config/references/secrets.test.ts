// Secrets in files and in Vault: what is read, refused and kept, and what messages say.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for references.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FakeVault, startVault } from "../../../tests/support/fake-vault.ts";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import { ConfigError, loadConfig, loadDatabaseUrl, readConfigFile, SecretValues } from "../config.ts";

let directory: string;
let clock: ManualClock;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-secrets-"));
  clock = manualClock();
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const at = (name: string) => join(directory, name);
const upstream = (key: string) => `upstreams:\n  - { name: up, url: "https://up.example.com/v1", api_key: "${key}" }\n`;

function open(env: Record<string, string> = {}) {
  const given = { HOME: directory, ...env };
  const secrets = new SecretValues({ env: given, clock });
  const inputs = { env: given, cwd: directory, secrets };
  return {
    secrets,
    load: () => loadConfig(inputs),
    reload: () => readConfigFile({ ...inputs, path: at("headrace.yaml") }),
  };
}

async function problemsOf(load: () => Promise<unknown>): Promise<string> {
  try {
    await load();
    return "none";
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

/** Two polls: the first sees the change, the second sees that it is complete. */
async function pollTwice(secrets: SecretValues) {
  const first = await secrets.poll();
  const second = await secrets.poll();
  return { file: [...first.file, ...second.file], turned: [...first.turned, ...second.turned] };
}

describe("secrets in files", () => {
  test("reads a file beside the configuration, without the blanks around the secret", async () => {
    writeFileSync(at("key"), "\n sk-of-file \r\n");
    writeFileSync(at("headrace.yaml"), upstream("${file:key}"));
    expect((await open().load()).upstreams[0]?.apiKey).toBe("sk-of-file");
  });

  test("reads a file of $CREDENTIALS_DIRECTORY, and a variable that stands there", async () => {
    mkdirSync(at("credentials"));
    writeFileSync(at("credentials/key"), "sk-of-systemd");
    writeFileSync(at("credentials/HEADRACE_METRICS_TOKEN"), "token-of-systemd");
    writeFileSync(at("headrace.yaml"), upstream("${file:$CREDENTIALS_DIRECTORY/key}"));
    const config = await open({ CREDENTIALS_DIRECTORY: at("credentials") }).load();
    expect(config.upstreams[0]?.apiKey).toBe("sk-of-systemd");
    expect(config.metricsToken).toBe("token-of-systemd");
  });

  test("reads secret variables of the server and of the configuration file from NAME_FILE", async () => {
    writeFileSync(at("secret"), "a".repeat(64));
    writeFileSync(at("url"), "postgres://u:p@db/headrace\n");
    writeFileSync(at("key"), "sk-named");
    writeFileSync(at("headrace.yaml"), upstream("${CLOUD_KEY}"));
    const env = { HEADRACE_SECRET_FILE: "secret", HEADRACE_DATABASE_URL_FILE: at("url"), CLOUD_KEY_FILE: at("key") };
    const config = await open(env).load();
    expect(config.secretsHex).toEqual(["a".repeat(64)]);
    expect(config.databaseUrl).toBe("postgres://u:p@db/headrace");
    expect(config.upstreams[0]?.apiKey).toBe("sk-named");
    expect(config.warnings).toEqual([]);
    expect(await loadDatabaseUrl(env)).toBe("postgres://u:p@db/headrace");
  });

  test("refuses a variable that is set beside its NAME_FILE", async () => {
    writeFileSync(at("token"), "0123456789abcdef");
    const env = { HEADRACE_METRICS_TOKEN: "fedcba9876543210", HEADRACE_METRICS_TOKEN_FILE: at("token") };
    expect(await problemsOf(open(env).load)).toBe(
      "HEADRACE_METRICS_TOKEN_FILE: is set beside HEADRACE_METRICS_TOKEN. Fix: Unset one of the two.",
    );
  });

  test.each<[string, () => void, RegExp]>([
    ["a missing file", () => {}, /the file \S+key does not exist\. Fix: Correct the path/],
    ["a directory", () => mkdirSync(at("key")), /the file \S+key is not a regular file/],
    ["an empty file", () => writeFileSync(at("key"), " \n"), /the file \S+key is empty/],
    ["a long file", () => writeFileSync(at("key"), "sk-canary".repeat(9_000)), /has 81000 bytes; a secret has at most/],
    ["bytes that are no text", () => writeFileSync(at("key"), new Uint8Array([0xff, 0xfe])), /is not UTF-8 text/],
    [
      "a file that every user may write",
      () => {
        writeFileSync(at("key"), "sk-canary");
        chmodSync(at("key"), 0o666);
      },
      /may be written by every user\. Fix: Run chmod o-w/,
    ],
    ["a pipe", () => void Bun.spawnSync(["mkfifo", at("key")]), /is not a regular file/],
  ])("refuses %s with the field and the path, and without the content", async (_what, make, message) => {
    make();
    writeFileSync(at("headrace.yaml"), upstream("${file:key}"));
    const problems = await problemsOf(open().load);
    expect(problems).toMatch(message);
    expect(problems).toStartWith("headrace.yaml:2:");
    expect(problems).toContain("upstreams[0].api_key: ");
    expect(problems).not.toContain("canary");
  });

  test("names the reference and not the value if the content is wrong for its field", async () => {
    writeFileSync(at("key"), "sk canary\nwith lines");
    writeFileSync(at("headrace.yaml"), upstream("${file:key}"));
    const problems = await problemsOf(open().load);
    expect(problems).toContain("${file:key}");
    expect(problems).not.toContain("canary");
  });

  test("does not read a reference in a comment", async () => {
    writeFileSync(at("headrace.yaml"), "# ${file:nowhere}\nport: 1\n");
    const { load, secrets } = open();
    expect((await load()).port).toBe(1);
    expect(secrets.states).toEqual([]);
  });

  test("takes over a changed file after two equal polls, and keeps the value before for redaction", async () => {
    writeFileSync(at("key"), "sk-one");
    writeFileSync(at("headrace.yaml"), upstream("${file:key}"));
    const { load, reload, secrets } = open();
    await load();
    expect(await pollTwice(secrets)).toEqual({ file: [], turned: [] });
    writeFileSync(at("key"), "sk-two-longer");
    expect((await secrets.poll()).file).toEqual([]);
    expect((await secrets.poll()).file).toEqual([`file:${at("key")}`]);
    expect((await reload()).upstreams[0]?.apiKey).toBe("sk-two-longer");
    expect(secrets.values).toEqual(expect.arrayContaining(["sk-one", "sk-two-longer"]));
  });

  test("keeps the last value of a removed or emptied file, and reports it as old until the file is back", async () => {
    writeFileSync(at("key"), "sk-one");
    writeFileSync(at("headrace.yaml"), upstream("${file:key}"));
    const { load, reload, secrets } = open();
    await load();
    for (const spoil of [() => rmSync(at("key")), () => writeFileSync(at("key"), "")]) {
      spoil();
      const failed = (await pollTwice(secrets)).turned;
      expect(failed).toMatchObject([{ name: `file:${at("key")}`, failure: expect.stringContaining(at("key")) }]);
      clock.advance(600_000);
      expect(secrets.states).toMatchObject([{ ageSeconds: 600 }]);
      expect((await reload()).upstreams[0]?.apiKey).toBe("sk-one");
      writeFileSync(at("key"), "sk-one");
      expect((await pollTwice(secrets)).turned).toMatchObject([{ failure: undefined, ageSeconds: 0 }]);
    }
  });

  test("forgets a secret to which the configuration no longer refers", async () => {
    writeFileSync(at("key"), "sk-one");
    writeFileSync(at("headrace.yaml"), upstream("${file:key}"));
    const { load, reload, secrets } = open();
    await load();
    writeFileSync(at("headrace.yaml"), upstream("sk-literal"));
    await reload();
    rmSync(at("key"));
    expect(await pollTwice(secrets)).toEqual({ file: [], turned: [] });
    expect(secrets.states).toEqual([]);
  });

  test("reads whole secrets through a directory that is swapped as Kubernetes does, 100 times", async () => {
    const secretOf = (version: number) => `sk-${String(version).padStart(3, "0").repeat(2_000)}`;
    const put = (version: number) => {
      mkdirSync(at(`..v${version}`));
      writeFileSync(at(`..v${version}/key`), secretOf(version));
      symlinkSync(`..v${version}`, at("..data_tmp"));
      renameSync(at("..data_tmp"), at("..data"));
      if (version > 0) rmSync(at(`..v${version - 1}`), { recursive: true });
    };
    put(0);
    symlinkSync("..data/key", at("key"));
    writeFileSync(at("headrace.yaml"), upstream("${file:key}"));
    const { load, secrets } = open();
    await load();
    for (let version = 1; version <= 100; version++) {
      const polling = Promise.all([secrets.poll(true), secrets.poll()]);
      put(version);
      expect((await polling).flatMap(({ turned }) => turned)).toEqual([]);
      await secrets.poll(true);
      expect(secrets.get(`file:${at("key")}`)).toEqual({ ok: true, value: secretOf(version) });
    }
  });
});

describe("secrets in Vault", () => {
  let vault: FakeVault;
  beforeEach(() => {
    vault = startVault({ "secret/data/openai": { api_key: "sk-vault-one" } });
  });
  afterEach(() => vault.stop());

  const reference = "${vault:secret/data/openai#api_key}";
  const name = "vault:secret/data/openai#api_key";
  const opened = (env: Record<string, string>) => {
    writeFileSync(at("headrace.yaml"), upstream(reference));
    return open({ VAULT_ADDR: vault.url, ...env });
  };
  const appRole = { VAULT_ROLE_ID: "role", VAULT_SECRET_ID: "the-secret-id" };

  test("signs in by token, as an AppRole and as a Kubernetes service account, in a namespace", async () => {
    writeFileSync(at("jwt"), "eyJ.service.account");
    const ways: Record<string, string>[] = [
      { VAULT_TOKEN: vault.staticToken },
      appRole,
      { VAULT_KUBERNETES_ROLE: "headrace", VAULT_KUBERNETES_TOKEN_FILE: at("jwt") },
    ];
    for (const way of ways) {
      const config = await opened({ ...way, VAULT_NAMESPACE: "team" }).load();
      expect(config.upstreams[0]?.apiKey).toBe("sk-vault-one");
    }
    expect(vault.logins).toEqual([
      { path: "auth/approle/login", body: { role_id: "role", secret_id: "the-secret-id" } },
      { path: "auth/kubernetes/login", body: { role: "headrace", jwt: "eyJ.service.account" } },
    ]);
    expect(new Set(vault.namespaces)).toEqual(new Set(["team"]));
  });

  test("signs in once although Vault refuses one of the paths", async () => {
    const { load } = opened(appRole);
    vault.refuse(true);
    for (let n = 0; n < 3; n++) expect(await problemsOf(load)).toContain("answered 403");
    expect(vault.logins).toHaveLength(1);
  });

  test("asks once for two fields of a secret", async () => {
    vault.put("secret/data/openai", { api_key: "sk-vault-one", host: "up.example.com" });
    const { load } = opened(appRole);
    writeFileSync(
      at("headrace.yaml"),
      upstream(reference).replace("up.example.com", "${vault:secret/data/openai#host}"),
    );
    await load();
    expect(vault.reads).toBe(1);
  });

  test.each<[string, () => void, RegExp]>([
    ["is sealed", () => vault.seal(true), /answered 503 .*it is sealed.*Fix: Unseal Vault/],
    [
      "refuses the reading",
      () => vault.refuse(true),
      /answered 403 when reading secret\/data\/openai: permission denied/,
    ],
    ["has no such secret", () => vault.put("secret/data/openai", undefined), /answered 404 .*there is no such secret/],
    ["lacks the field", () => vault.put("secret/data/openai", { other: "canary" }), /has no text api_key in secret/],
    ["refuses the sign-in", () => vault.revokeRole(), /answered 400 when signing in by approle/],
    ["is away", () => vault.stop(), /Vault at http:\/\/127\.0\.0\.1:\d+ cannot be read \(ECONNREFUSED\)/],
  ])("names the field and the reason if Vault %s at the start", async (_what, spoil, message) => {
    spoil();
    const problems = await problemsOf(opened(appRole).load);
    expect(problems).toMatch(message);
    expect(problems).toContain("upstreams[0].api_key: ");
    for (const secret of ["canary", "the-secret-id", "sk-vault"]) expect(problems).not.toContain(secret);
  });

  test("names VAULT_CACERT if the certificate of Vault is not trusted, or its file cannot be read", async () => {
    const [key, cert] = [at("key.pem"), at("cert.pem")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const subject = ["-subj", "/CN=vault", "-addext", "subjectAltName=IP:127.0.0.1"];
    expect(Bun.spawnSync(["openssl", "req", "-x509", ...kind, "-keyout", key, "-out", cert, ...subject]).success).toBe(
      true,
    );
    const answer = { data: { data: { api_key: "sk-tls" } } };
    const tls = { key: Bun.file(key), cert: Bun.file(cert) };
    await using server = Bun.serve({ hostname: "127.0.0.1", port: 0, tls, fetch: () => Response.json(answer) });
    const env = { VAULT_ADDR: `https://127.0.0.1:${server.port}`, VAULT_TOKEN: "token" };
    writeFileSync(at("headrace.yaml"), upstream("${vault:secret/data/openai#api_key}"));
    expect(await problemsOf(open(env).load)).toMatch(
      /cannot be read \(DEPTH_ZERO_SELF_SIGNED_CERT\).*Set VAULT_CACERT/,
    );
    const missing = await problemsOf(open({ ...env, VAULT_CACERT: at("none") }).load);
    expect(missing).toContain("VAULT_CACERT names a file that cannot be read (ENOENT)");
    expect((await open({ ...env, VAULT_CACERT: cert }).load()).upstreams[0]?.apiKey).toBe("sk-tls");
  });

  test("reads a changed secret after about five minutes", async () => {
    const { load, reload, secrets } = opened(appRole);
    await load();
    vault.put("secret/data/openai", { api_key: "sk-vault-two" });
    clock.advance(250_000);
    expect((await secrets.poll()).file).toEqual([]);
    clock.advance(81_000);
    expect((await secrets.poll()).file).toEqual([name]);
    expect((await reload()).upstreams[0]?.apiKey).toBe("sk-vault-two");
  });

  test("reports a change once, although polls are begun while Vault is awaited", async () => {
    const { load, secrets } = opened(appRole);
    await load();
    vault.put("secret/data/openai", { api_key: "sk-vault-two" });
    clock.advance(400_000);
    const polls = await Promise.all([secrets.poll(), secrets.poll(), secrets.poll()]);
    expect(polls.flatMap(({ file }) => file)).toEqual([name]);
  });

  test("keeps the last value while Vault is sealed, refuses or is away, and reports its age", async () => {
    const { load, reload, secrets } = opened(appRole);
    await load();
    for (const spoil of [(on: boolean) => vault.seal(on), (on: boolean) => vault.refuse(on)]) {
      spoil(true);
      clock.advance(331_000);
      expect((await secrets.poll()).turned).toMatchObject([
        { name, failure: expect.stringContaining("Vault answered") },
      ]);
      clock.advance(600_000);
      expect((await secrets.poll()).turned).toEqual([]);
      expect(secrets.states).toMatchObject([{ ageSeconds: 931 }]);
      expect((await reload()).upstreams[0]?.apiKey).toBe("sk-vault-one");
      spoil(false);
      clock.advance(61_000);
      expect((await secrets.poll()).turned).toMatchObject([{ name, failure: undefined, ageSeconds: 0 }]);
    }
  });

  test("asks a failing Vault ever more seldom, at most once a minute", async () => {
    const { load, secrets } = opened(appRole);
    await load();
    vault.seal(true);
    clock.advance(331_000);
    const before = vault.requests;
    for (let second = 0; second < 600; second++) {
      await secrets.poll();
      clock.advance(1_000);
    }
    expect(vault.requests - before).toBeLessThan(16);
  });

  test("renews the token after two thirds of its lease, also between two reads", async () => {
    vault.leaseSeconds = 60;
    const { load, secrets } = opened(appRole);
    await load();
    for (let second = 0; second < 240; second += 5) {
      clock.advance(5_000);
      vault.passSeconds(5);
      await secrets.poll();
    }
    expect(vault.renewals).toBeGreaterThanOrEqual(4);
    expect(vault.logins).toHaveLength(1);
  });

  test("signs in again if the lease has ended or the token was revoked", async () => {
    vault.leaseSeconds = 60;
    const { load, secrets } = opened(appRole);
    await load();
    vault.passSeconds(61);
    clock.advance(331_000);
    expect((await secrets.poll()).turned).toEqual([]);
    vault.revokeTokens();
    clock.advance(10_000);
    expect((await secrets.poll(true)).turned).toEqual([]);
    expect(vault.logins).toHaveLength(3);
  });

  test("follows no redirect, which would carry the token elsewhere", async () => {
    let asked = 0;
    using elsewhere = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(++asked)) });
    vault.redirect = `http://127.0.0.1:${elsewhere.port}/`;
    expect(await problemsOf(opened(appRole).load)).toMatch(/answered 307 .*a redirect/);
    expect(asked).toBe(0);
  });
});
