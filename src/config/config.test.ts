// The configuration as a whole: order of sources, refusals, modes, the result, reload.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for variables.
import { afterAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tierFor } from "../../tests/support/principal.ts";
import {
  ConfigError,
  type ConfigInputs,
  keysThatNeedRestart,
  loadConfig,
  loadDataDir,
  loadPullSource,
  readConfigFile,
  serveFlags,
} from "./config.ts";
import { exampleFile } from "./example.ts";
import { configuredSecrets } from "./secrets.ts";

const root = await mkdtemp(join(tmpdir(), "headrace-config-"));
afterAll(() => rm(root, { recursive: true }));

const exampleVariables = {
  CLOUD_API_KEY: "k",
  ISSUES_TOKEN: "i",
  CRM_CLIENT_SECRET: "c",
  ANTHROPIC_API_KEY: "a",
  AZURE_API_KEY: "z",
  SMTP_PASSWORD: "p%40ss",
  SSO_CLIENT_SECRET: "s",
  S3_KEY_ID: "i",
  S3_KEY: "k",
  OTLP_TOKEN: "t",
  GUARD_TOKEN: "g",
};

let directories = 0;
/** A working directory of its own, with these files. */
async function directoryWith(files: Record<string, string> = {}): Promise<string> {
  const directory = join(root, String(directories++));
  await mkdir(directory);
  for (const [name, text] of Object.entries(files)) await Bun.write(join(directory, name), text);
  return directory;
}

/** Loads with nothing from this machine's environment. */
async function load(inputs: ConfigInputs & { yaml?: string } = {}) {
  const { yaml, flags = {}, env = {}, cwd } = inputs;
  const directory = cwd ?? (await directoryWith(yaml === undefined ? {} : { "headrace.yaml": yaml }));
  return await loadConfig({ flags, env: { HOME: "/home/u", ...env }, cwd: directory });
}

async function refusal(promise: Promise<unknown>): Promise<ConfigError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ConfigError)) throw new Error(`no ConfigError, but ${String(error)}`);
  return error;
}

describe("precedence of settings", () => {
  test("applies defaults without flags, variables and file", async () => {
    expect(await load()).toMatchObject({
      host: "127.0.0.1",
      port: 7545,
      mode: "development",
      logFormat: "text",
      dataDir: "/home/u/.local/share/headrace",
      publicUrl: undefined,
      trustedProxies: [],
      secretsHex: undefined,
      discoverLocal: true,
      engine: {
        ...{ demo: true, models: [], context: undefined, parallel: undefined, threads: undefined },
        ...{ memory: { ram: undefined, gpu: undefined }, commands: [] },
      },
      upstreams: [],
      models: [],
      tiers: [],
      limits: { bodyBytes: 33_554_432, messages: 2048, depth: 64 },
      cors: { origins: [] },
      warnings: [],
      file: { found: false },
    });
  });

  test("prefers a flag to a variable, a variable to the file, and the file to the default", async () => {
    const yaml = "port: 1\nlog_format: json\ndiscover_local: false\n";
    const env = { HEADRACE_PORT: "2", HEADRACE_DISCOVER_LOCAL: "true" };
    expect((await load({ yaml })).port).toBe(1);
    expect(await load({ yaml, env })).toMatchObject({ port: 2, logFormat: "json", discoverLocal: true });
    expect(await load({ yaml, env, flags: { port: "3" } })).toMatchObject({ port: 3, logFormat: "json" });
    expect((await load({ env, flags: { discoverLocal: false } })).discoverLocal).toBe(false);
  });

  test("ignores a --no flag that was not given", async () => {
    const yaml = "discover_local: false\nengine: { demo: false }\n";
    const config = await load({ yaml, flags: { discoverLocal: true, demo: true } });
    expect(config).toMatchObject({ discoverLocal: false, engine: { demo: false } });
  });

  test("treats an empty variable as unset", async () => {
    expect(await load({ env: { HEADRACE_PORT: "", HEADRACE_TRUSTED_PROXIES: " " } })).toMatchObject({ port: 7545 });
  });

  test("separates lists in variables by commas, and accepts repeated --model", async () => {
    const cwd = await directoryWith();
    const env = { HEADRACE_TRUSTED_PROXIES: "10.0.0.0/8, ::1," };
    const config = await load({ cwd, env, flags: { model: ["a,b.gguf", "/m/c.gguf"] } });
    expect(config.trustedProxies).toEqual(["10.0.0.0/8", "::1"]);
    expect(config.engine.models).toEqual([join(cwd, "a,b.gguf"), "/m/c.gguf"]);
  });

  test("resolves relative paths of the file from the file, and others from the working directory", async () => {
    const cwd = await directoryWith();
    const other = await directoryWith({ "x.yaml": "data_dir: data\nengine: { models: [m.gguf, ~/n.gguf] }\n" });
    const config = await load({ cwd, env: { HEADRACE_CONFIG: join(other, "x.yaml") } });
    expect(config.dataDir).toBe(join(other, "data"));
    expect(config.engine.models).toEqual([join(other, "m.gguf"), "/home/u/n.gguf"]);
    expect(config.file).toMatchObject({ path: join(other, "x.yaml"), found: true });
    expect((await load({ cwd, flags: { dataDir: "data" } })).dataDir).toBe(join(cwd, "data"));
  });

  test("converts variables in the file to the option's type", async () => {
    const yaml = "port: ${P}\ndiscover_local: ${D:-false}\nengine: { threads: '${T}' }\n";
    const config = await load({ yaml, env: { P: "0", T: "2" } });
    expect(config).toMatchObject({ port: 0, discoverLocal: false, engine: { threads: 2 } });
  });

  test("keeps port 0, and removes brackets from an IPv6 host", async () => {
    expect(await load({ flags: { port: "0", host: "[::1]" } })).toMatchObject({ port: 0, host: "::1" });
  });

  test("reads exactly the flags of the command line", async () => {
    const values: Record<string, string> = {
      mode: "production",
      publicUrl: "https://h",
      logFormat: "json",
      host: "::1",
    };
    for (const { syntax, description } of serveFlags()) {
      expect(syntax).toMatch(/^--[a-z-]+( <[a-z.]+>)?$/);
      expect(description).not.toBe("");
    }
    expect(
      serveFlags()
        .filter((flag) => flag.repeatable)
        .map((flag) => flag.syntax),
    ).toEqual(["--model <path.gguf>"]);
    expect(await load({ flags: values })).toMatchObject(values);
  });
});

describe("invalid settings", () => {
  test.each([
    [{ port: "70000" }, {}, "--port: must be a whole number from 0 to 65535 (got 70000). Fix: "],
    [{ port: "80a" }, {}, '--port: must be a whole number from 0 to 65535 (got "80a"). Fix: '],
    [{ host: "" }, {}, '--host: must be an IP address or a host name (got ""). Fix: '],
    [{}, { HEADRACE_PORT: "-1" }, "HEADRACE_PORT: must be a whole number from 0 to 65535 (got -1). Fix: "],
    [{}, { HEADRACE_PORT: "tcp://10.0.0.1:7545" }, "HEADRACE_PORT: must be"],
    [{}, { HEADRACE_MODE: "prod" }, 'HEADRACE_MODE: must be development or production (got "prod"). Fix: '],
    [{}, { HEADRACE_DISCOVER_LOCAL: "no" }, 'HEADRACE_DISCOVER_LOCAL: must be true or false (got "no"). Fix: '],
    [
      {},
      { HEADRACE_TRUSTED_PROXIES: "::1,x" },
      'HEADRACE_TRUSTED_PROXIES: must be a list of addresses and CIDR ranges (got "x")',
    ],
    [
      {},
      { HEADRACE_PUBLIC_URL: "https://h/v1" },
      "HEADRACE_PUBLIC_URL: must be an http:// or https:// URL of host and port",
    ],
    [{ config: "none.yaml" }, {}, "--config: the file none.yaml does not exist. Fix: "],
    [
      {},
      { HEADRACE_DATABASE_URL: "postgres://u:pw@h/d" },
      "HEADRACE_SECRET: is missing; the records in PostgreSQL need it",
    ],
    [{}, { HEADRACE_DATABASE_URL: "mysql://u:pw@h/d" }, "HEADRACE_DATABASE_URL: must be a postgres:// URL"],
    [{}, { HEADRACE_DATABASE_URL: "postgres://u:pw@h/d%zz" }, "HEADRACE_DATABASE_URL: must be a postgres:// URL"],
    [
      {},
      { HEADRACE_DATABASE_URL: "postgres://u:pw@h/d?sslmode=on" },
      "HEADRACE_DATABASE_URL: must be a postgres:// URL",
    ],
    [{}, { HEADRACE_REDIS_URL: "redis://h" }, "HEADRACE_DATABASE_URL: is missing; HEADRACE_REDIS_URL is set"],
    [{}, { HEADRACE_REDIS_URL: "http://h" }, "HEADRACE_REDIS_URL: must be a redis:// or rediss:// URL"],
    [{ advertiseUrl: "h:1" }, {}, "--advertise-url: must be an http:// or https:// URL"],
    [{ model: ["hf:a/b"] }, {}, "--model: must be "],
  ])("refuses an invalid setting with its name and a fix: %j %j", async (flags, env, expected) => {
    const { message, problems } = await refusal(load({ flags, env }));
    expect(problems).toHaveLength(1);
    expect(message).toStartWith(expected);
    expect(message).not.toContain("pw@");
  });

  test("gives a fix of its own for HEADRACE_PORT as Kubernetes sets it", async () => {
    const { message } = await refusal(load({ env: { HEADRACE_PORT: "tcp://10.0.0.1:7545" } }));
    expect(message).toContain("enableServiceLinks: false");
  });

  test("reports problems of flags, variables and file together, those of the file by line", async () => {
    const yaml = "models:\n  - id: m\n    deployments: [{ upstream: x }]\nlimits: { depth: 1 }\nport: x\n";
    const { problems } = await refusal(load({ yaml, flags: { port: "y" }, env: { HEADRACE_MODE: "z" } }));
    expect(problems.map((problem) => [problem.path, problem.line])).toEqual([
      ["HEADRACE_MODE", undefined],
      ["--port", undefined],
      ["limits.depth", 4],
      ["port", 5],
    ]);
  });

  test("reports only the YAML error of a file that is not YAML", async () => {
    const { problems } = await refusal(load({ yaml: "mode: [\n", flags: { mode: "production" } }));
    expect(problems.map((problem) => problem.file)).toEqual(["headrace.yaml"]);
  });

  test("refuses a file that cannot be read", async () => {
    const cwd = await directoryWith();
    await mkdir(join(cwd, "headrace.yaml"));
    expect((await refusal(load({ cwd }))).message).toContain("cannot be read (EISDIR)");
  });

  test("warns of a misspelt variable and of a misnamed file", async () => {
    const cwd = await directoryWith({ "headrace.yml": "port: 1" });
    const env = { HEADRACE_PROT: "1", HEADRACE_SERVICE_HOST: "10.0.0.1", HEADRACE_PORT_7545_TCP: "x" };
    expect((await load({ cwd, env })).warnings).toEqual([
      expect.stringContaining("headrace.yml is not read"),
      "HEADRACE_PROT: is not a known variable; did you mean HEADRACE_PORT?",
    ]);
  });
});

describe("modes of the server", () => {
  test.each(["0.0.0.0", "::", "10.0.0.1", "ai.example.com"])(
    "requires production mode for the host %s",
    async (host) => {
      const { message } = await refusal(load({ flags: { host } }));
      expect(message).toStartWith(`--host: ${host} can be reached from other machines, which needs production mode`);
      expect(message).toContain("--mode production");
    },
  );

  test("reports a reachable host in the file with its line", async () => {
    const { message } = await refusal(load({ yaml: "mode: development\nhost: 0.0.0.0\n" }));
    expect(message).toStartWith("headrace.yaml:2:7  host: 0.0.0.0 can be reached");
  });

  test("requires a public URL in production, on loopback too", async () => {
    const { message } = await refusal(load({ flags: { mode: "production" } }));
    expect(message).toStartWith("public_url: is missing; production mode needs it. Fix: ");
    const publicUrl = "https://ai.example.com/";
    expect(await load({ flags: { mode: "production", publicUrl } })).toMatchObject({
      mode: "production",
      publicUrl: "https://ai.example.com",
      warnings: [],
    });
    expect((await load({ flags: { mode: "production", publicUrl, host: "0.0.0.0" } })).host).toBe("0.0.0.0");
  });

  test("warns of an unencrypted public URL and of a proxy range that trusts every client", async () => {
    const flags = { mode: "production", publicUrl: "http://h", trustedProxies: "0.0.0.0/0" };
    expect((await load({ flags })).warnings).toEqual([
      expect.stringContaining("unencrypted"),
      expect.stringContaining("0.0.0.0/0 lets every client"),
    ]);
  });
});

describe("the secret and Redis", () => {
  const hex = "0a".repeat(32);
  test("accepts a Redis cache only with a configured Redis", async () => {
    const yaml = "cache: { store: redis }\n";
    const { message } = await refusal(load({ yaml }));
    expect(message).toBe(
      "headrace.yaml:1:17  cache.store: is redis, and no Redis is configured. Fix: Set the environment variable HEADRACE_REDIS_URL, or write store: memory.",
    );
    const env = {
      ...{ HEADRACE_SECRET: "0".repeat(64), HEADRACE_DATABASE_URL: "postgres://h/d" },
      HEADRACE_REDIS_URL: "redis://h:1/0",
    };
    expect((await load({ yaml, env })).cache.store).toBe("redis");
  });

  test("reads the secret as hex or base64, from the environment only", async () => {
    const base64 = Buffer.from(hex, "hex").toString("base64");
    expect((await load({ env: { HEADRACE_SECRET: hex } })).secretsHex).toEqual([hex]);
    expect((await load({ env: { HEADRACE_SECRET: `${base64}\n` } })).secretsHex).toEqual([hex]);
    expect((await load({ flags: { secret: hex } })).secretsHex).toBeUndefined();
  });

  test.each(["canary-too-short", " ", `${hex}00`])(
    "refuses a secret of other than 32 bytes without showing it: %p",
    async (secret) => {
      const { message } = await refusal(load({ env: { HEADRACE_SECRET: secret } }));
      expect(message).toStartWith("HEADRACE_SECRET: must be 32 bytes");
      expect(message).not.toContain(secret.trim() || "got");
    },
  );
});

describe("the mail server in the settings", () => {
  const url = "smtp://user:canary-pw@mail.example.com:587";
  const from = "headrace@example.com";

  test("reads the mail server from variables or the file, variables first, and never from a flag", async () => {
    const yaml = `mail: { url: "smtps://a:b@h", from: "H <h@example.com>" }\n`;
    expect((await load({ yaml })).mail).toEqual({ url: "smtps://a:b@h", from: "H <h@example.com>" });
    expect((await load({ yaml, env: { HEADRACE_SMTP_URL: url } })).mail).toEqual({ url, from: "H <h@example.com>" });
    const env = { HEADRACE_SMTP_URL: url, HEADRACE_MAIL_FROM: from };
    expect((await load({ env })).mail).toEqual({ url, from });
    expect((await load({ flags: { smtpUrl: url, mailFrom: from } })).mail).toBeUndefined();
  });

  test("allows webhooks to this machine in development mode only", async () => {
    const yaml = "webhook_loopback: true\n";
    expect((await load()).webhookLoopback).toBe(false);
    expect((await load({ yaml })).webhookLoopback).toBe(true);
    const flags = { mode: "production", publicUrl: "https://h.example" };
    const { message } = await refusal(load({ yaml, flags }));
    expect(message).toContain("webhook_loopback: is for development mode alone. Fix: ");
  });

  test("requires a sender for the mail server", async () => {
    const { message } = await refusal(load({ env: { HEADRACE_SMTP_URL: url } }));
    expect(message).toStartWith("mail.from: is missing; the mail server is configured. Fix: ");
  });

  test.each([
    "canary.example.com:587",
    "http://canary.example.com",
    "smtp://canary@mail.example.com",
    "smtp://user:canary%zz@mail.example.com",
    "smtp://user:canary%0d%0aX@mail.example.com",
    "smtp://user:canary@mail.example.com/path",
    "smtp:///canary",
  ])("refuses an invalid mail server without showing it: %s", async (wrong) => {
    const { message } = await refusal(load({ env: { HEADRACE_SMTP_URL: wrong, HEADRACE_MAIL_FROM: from } }));
    expect(message).toStartWith("HEADRACE_SMTP_URL: must be an smtp:// or smtps:// URL");
    expect(message).not.toContain("canary");
  });

  test.each(["headrace", "a@b, c@d", "H <a@b>\r\nBcc: c@d", "<a@b"])("refuses the mail sender %p", async (sender) => {
    const { message } = await refusal(load({ env: { HEADRACE_SMTP_URL: url, HEADRACE_MAIL_FROM: sender } }));
    expect(message).toStartWith("HEADRACE_MAIL_FROM: must be an e-mail address");
  });
});

describe("single sign-on in the settings", () => {
  const least = "name: E, issuer: 'https://login.example.com', client_id: c";

  test("requires a name, an issuer and a client id for single sign-on, with defaults for the rest", async () => {
    expect((await load({ yaml: `sso: { ${least} }\n` })).sso).toEqual({
      name: "E",
      issuer: "https://login.example.com",
      clientId: "c",
      clientSecret: undefined,
      scopes: ["openid", "email", "profile"],
      allowedDomains: [],
      accountId: undefined,
      role: "member",
    });
    const { problems } = await refusal(load({ yaml: "sso: {}\n" }));
    expect(problems.map(({ path }) => path)).toEqual(["sso.name", "sso.issuer", "sso.client_id"]);
  });

  test("allows plain HTTP for an identity provider on this machine only", async () => {
    const at = (issuer: string) => load({ yaml: `sso: { name: E, issuer: '${issuer}', client_id: c }\n` });
    expect((await at("http://127.0.0.1:9000")).sso?.issuer).toBe("http://127.0.0.1:9000");
    expect((await refusal(at("http://login.example.com"))).message).toStartWith(
      "headrace.yaml:1:25  sso.issuer: must be an https:// URL",
    );
  });

  test.each([
    ["scopes: [email]", "sso.scopes: must be a list of scopes, openid among them"],
    ["role: owner", 'sso.role: must be admin or member (got "owner")'],
    ["allowed_domains: ['@example.com']", "sso.allowed_domains[0]: must be a domain in lower case, without @"],
    ["account: first", "sso.account: must be the id of an account"],
    ["client_secret: 'canary canary'", "sso.client_secret: must be 1 to 1024 printable ASCII characters"],
  ])("refuses for single sign-on %s", async (more, expected) => {
    const { message } = await refusal(load({ yaml: `sso: { ${least}, ${more} }\n` }));
    expect(message).toContain(expected);
    expect(message).not.toContain("canary");
  });
});

describe("the API settings of an upstream", () => {
  const yaml = (more: string) => `upstreams:\n  - name: a\n    url: http://h/v1\n${more}`;

  test.each([
    ["    api: claude\n", 'headrace.yaml:4:10  upstreams[0].api: must be openai or messages (got "claude")'],
    ["    apis: []\n", "headrace.yaml:4:11  upstreams[0].apis: must be a list of chat, responses and messages"],
    ["    apis: [completions]\n", "upstreams[0].apis[0]: must be chat, responses or messages"],
    ["    key_header: cookie\n", "upstreams[0].key_header: must be authorization, api-key or x-api-key"],
    ["    query: { api-version: 1 }\n", "upstreams[0].query.api-version: must be a name of letters"],
    ["    query: { v: 'canary canary' }\n", "upstreams[0].query.v: must be a name of letters"],
    ["    api: messages\n    apis: [chat]\n", "headrace.yaml:5:11  upstreams[0].apis: must be messages alone"],
  ])("refuses the upstream settings %j with position and reason", async (more, expected) => {
    const { message } = await refusal(load({ yaml: yaml(more) }));
    expect(message).toContain(expected);
    expect(message).toContain("Fix: ");
    expect(message).not.toContain("canary canary");
  });

  test("trims the URL of an upstream", async () => {
    const config = await load({ yaml: 'upstreams: [{ name: a, url: " http://h/v1 " }]\n' });
    expect(config.upstreams[0]).toMatchObject({ url: "http://h/v1" });
  });

  test("reads the API settings of an upstream, with variables in the query", async () => {
    const more =
      "    api: openai\n    apis: [responses]\n    key_header: api-key\n    query: { api-version: '${V}' }\n";
    const config = await load({ yaml: yaml(more), env: { V: "preview" } });
    expect(config.upstreams[0]).toMatchObject({
      ...{ api: "openai", apis: ["responses"], keyHeader: "api-key", query: { "api-version": "preview" } },
    });
  });

  test("warns of Anthropic's base URL without api: messages", async () => {
    const warned = await load({ yaml: "upstreams: [{ name: a, url: https://api.anthropic.com/v1 }]\n" });
    expect(warned.warnings.join()).toContain("is Anthropic's own API");
    const right = await load({ yaml: "upstreams: [{ name: a, url: https://api.anthropic.com, api: messages }]\n" });
    expect(right.warnings).toEqual([]);
  });
});

describe("the loaded configuration", () => {
  test("maps the file's keys to the code's names", async () => {
    const config = await load({ yaml: exampleFile, env: { ...exampleVariables, CLOUD_TIMEOUT: "5" } });
    expect(config.upstreams[1]).toEqual({
      name: "cloud",
      url: "https://api.example.com/v1",
      apiKey: "k",
      api: "openai",
      apis: undefined,
      keyHeader: undefined,
      ...{ cacheSalt: false, priority: false, identifiers: "hashed" },
      query: undefined,
      discover: false,
      local: false,
      timeoutSeconds: 5,
      idleSeconds: 900,
      maxConcurrency: 64,
      httpClient: "own",
    });
    expect(config.limits).toMatchObject({ queue: 512, queueSeconds: 30 });
    expect(config.chatRetentionDays).toBe(30);
    expect(config.retention).toEqual({
      requests: { days: 400, isDefault: false },
      hourly_usage: { days: null, isDefault: false },
      refusals: { days: 400, isDefault: false },
      refused_requests: { days: 30, isDefault: false },
      audit: { days: null, isDefault: false },
    });
    expect(config.models[0]).toMatchObject({
      id: "assistant",
      ownedBy: "example",
      environments: ["live", "test", "dev"],
      price: { input: 0.15, output: 0.6 },
      deployments: [
        { upstream: "cloud", model: "big-model-2", weight: 3 },
        { upstream: "ollama", model: "llama3.1:8b", weight: 1 },
      ],
      policies: {
        continuation: true,
        overflow: {
          to: [{ upstream: "cloud", cost: { input: 0.1, output: 0.4 }, costOf: null }],
          ...{ afterSeconds: 5, promptTokensAbove: 30_000, hours: [{ start: 1_080, end: 360 }] },
          ...{ mostNanoUsdPerRequest: 500_000_000, spend: { nanoUsd: 50_000_000_000, per: "day" } },
        },
        cache: { requests: "deterministic", ttlSeconds: 3_600, priceFactor: 0, semantic: null },
        guardrails: ["no-secrets", "customer-numbers"],
        shadow: { model: "assistant-next", percent: 5 },
        split: [{ model: "assistant-next", percent: 10 }],
      },
    });
    const sides = ["request", "answer"] as const;
    expect(config.guardrails).toEqual([
      { name: "no-secrets", kind: "secrets", sides, action: "mask", rules: [] },
      {
        ...{ name: "customer-numbers", kind: "patterns", sides: ["answer"], action: "block" },
        patterns: [{ name: "customer-number", pattern: "KD-[0-9]{8}" }],
      },
      {
        ...{ name: "on-topic", kind: "judge", sides: ["request"], action: "block", model: "assistant-next" },
        ...{ policy: "Nothing but questions about our products.", timeoutMs: 5_000, otherwise: "pass" },
      },
      {
        ...{ name: "own-service", kind: "http", sides, action: "note", url: "https://guard.example.com/check" },
        ...{ token: "g", local: false, timeoutMs: 5_000, otherwise: "block" },
      },
    ]);
    expect(config.cache).toEqual({ store: "memory", maxBytes: 67_108_864, maxAnswerBytes: 1_048_576 });
    expect(config.mail).toEqual({
      url: "smtps://headrace:p%40ss@smtp.example.com",
      from: "Headrace <headrace@example.com>",
    });
    expect(config.sso).toEqual({
      name: "Example Inc",
      issuer: "https://login.example.com",
      clientId: "headrace",
      clientSecret: "s",
      scopes: ["openid", "email", "profile"],
      allowedDomains: ["example.com"],
      accountId: "acct_0199",
      role: "member",
    });
    expect(config.tiers[1]).toEqual(
      tierFor({
        ...{ name: "enterprise", requestsPerMinute: 1000, environments: ["live", "test"], quotas: [] },
        priority: "high",
      }),
    );
  });

  test.each(["{}", "{ continuation: false }", "{ guardrails: [], split: [] }"])(
    "gives a model no policies if all are off: %p",
    async (policies) => {
      const config = await load({ yaml: `models: [{ id: m, policies: ${policies} }]\n` });
      expect(config.models[0]?.policies).toBeUndefined();
    },
  );

  test("defaults a model to live and dev under its own id, and trims a base URL's last slash", async () => {
    const yaml =
      "upstreams: [{ name: a, url: http://h/v1/ }]\nmodels: [{ id: m, deployments: [{ upstream: a }, { upstream: built-in }] }]\n";
    const config = await load({ yaml });
    expect(config.upstreams[0]?.url).toBe("http://h/v1");
    expect(config.models[0]).toMatchObject({
      environments: ["live", "dev"],
      deployments: [
        { upstream: "a", model: "m", weight: 1 },
        { upstream: "built-in", model: "m", weight: 1 },
      ],
    });
  });

  test("freezes the configuration deeply", async () => {
    const config = await load({ yaml: exampleFile, env: exampleVariables });
    const open: string[] = [];
    const visit = (value: unknown, path: string) => {
      if (typeof value !== "object" || value === null) return;
      if (!Object.isFrozen(value)) open.push(path);
      for (const [key, inner] of Object.entries(value)) visit(inner, `${path}.${key}`);
    };
    visit(config, "config");
    expect(open).toEqual([]);
    expect(() => Object.assign(config.limits, { depth: 1 })).toThrow(TypeError);
  });

  test("returns independent, equal results for two loads", async () => {
    const inputs = { yaml: exampleFile, env: exampleVariables };
    const cwd = await directoryWith({ "headrace.yaml": inputs.yaml });
    expect(await load({ cwd, env: inputs.env })).toEqual(await load({ cwd, env: inputs.env }));
  });
});

describe("tracing in the settings", () => {
  const endpoint = "http://127.0.0.1:4318";
  const off = { protocol: "http/json" as const, headers: {}, serviceName: "headrace", sample: 1, content: false };

  test("turns tracing off without an endpoint, and warns if other tracing settings are present", async () => {
    expect((await load()).tracing).toBeUndefined();
    const { tracing, warnings } = await load({ yaml: "tracing: { sample: 0.5 }\n" });
    expect([tracing, warnings]).toEqual([undefined, ["tracing: has no endpoint, so nothing is traced"]]);
  });

  test.each([
    ["the file", { yaml: `tracing: { endpoint: "${endpoint}/" }\n` }, `${endpoint}/v1/traces`],
    ["the file, as a whole URL", { yaml: `tracing: { endpoint: "${endpoint}/v1/traces" }\n` }, `${endpoint}/v1/traces`],
    ["a variable", { env: { OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/otel` } }, `${endpoint}/otel/v1/traces`],
    [
      "the variable for traces alone, to which nothing is added",
      { env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/x`, OTEL_EXPORTER_OTLP_ENDPOINT: "http://other" } },
      `${endpoint}/x`,
    ],
  ])("reads the tracing endpoint from %s", async (_name, inputs, url) => {
    expect((await load(inputs)).tracing).toEqual({ ...off, url });
  });

  test("merges tracing headers of both sources, and ignores them all if tracing is disabled", async () => {
    const yaml = `tracing: { endpoint: "${endpoint}", headers: { X-Tenant: "a", Authorization: "\${TOKEN}" }, service_name: s, sample: 0.25, content: true }\n`;
    const env = { TOKEN: "Bearer one", OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20two, x-more=1" };
    const headers = { "x-tenant": "a", authorization: "Bearer two", "x-more": "1" };
    const config = await load({ yaml, env });
    const url = `${endpoint}/v1/traces`;
    const protocol = "http/json";
    expect(config.tracing).toEqual({ url, headers, protocol, serviceName: "s", sample: 0.25, content: true });
    expect(configuredSecrets(config)).toContain("Bearer two");
    expect((await load({ yaml, env: { ...env, OTEL_SDK_DISABLED: "true" } })).tracing).toBeUndefined();
  });

  test("warns of a tracing port that mostly speaks another protocol", async () => {
    const { warnings } = await load({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4317" } });
    expect(warnings).toEqual([expect.stringContaining("port 4318")]);
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "canary:4318" }, "OTEL_EXPORTER_OTLP_ENDPOINT: must be an http:// or https:// URL"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://a:canary@h" }, "OTEL_EXPORTER_OTLP_ENDPOINT: must be"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "canary" }, "OTEL_EXPORTER_OTLP_HEADERS: must be pairs such as name=value"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "a=canary%0d%0ax" }, "OTEL_EXPORTER_OTLP_HEADERS: must be"],
  ])("refuses the tracing setting %j without showing it", async (env, expected) => {
    const { message } = await refusal(load({ env }));
    expect(message).toStartWith(expected);
    expect(message).not.toContain("canary");
  });

  test.each([
    ['headers: { a: "canary\\nb" }', "tracing.headers.a: must be a name of letters"],
    ["headers: { 'a b': canary }", "tracing.headers.a b: must be a name of letters"],
    ["sample: 1.5", "tracing.sample: must be a number from 0 to 1 (got 1.5)"],
  ])("refuses tracing in the file with %s", async (line, expected) => {
    const { message } = await refusal(load({ yaml: `tracing: { endpoint: "${endpoint}", ${line} }\n` }));
    expect(message).toContain(expected);
    expect(message).not.toContain("canary");
  });
});

test("lists the secrets of every part as they are sent, and nothing else", async () => {
  const env = {
    HEADRACE_SECRET: "0".repeat(64),
    HEADRACE_DATABASE_URL: "postgres://u:p%40ss-word@h/d",
    HEADRACE_REDIS_URL: "redis://h:1/0",
  };
  const config = await load({
    yaml: "upstreams: [{ name: a, url: http://h/v1, api_key: sk-up }]\nguardrails: [{ name: g, kind: http, url: http://h, token: gt }]\n",
    env,
  });
  expect([...configuredSecrets(config)].sort()).toEqual(["0".repeat(64), "gt", "p%40ss-word", "p@ss-word", "sk-up"]);
});

describe("logging in the settings", () => {
  test("logs from the level info unless the file or, before it, a variable says otherwise", async () => {
    expect(await load()).toMatchObject({
      logLevel: undefined,
      logs: { level: "info", sample: 1, slowMs: Number.POSITIVE_INFINITY },
    });
    const yaml = "logs: { level: warn, sample: 0.1, slow_seconds: 2.5 }\n";
    expect(await load({ yaml, env: { HEADRACE_LOG_LEVEL: "error" } })).toMatchObject({
      logLevel: "error",
      logs: { level: "warn", sample: 0.1, slowMs: 2_500 },
    });
  });
});

describe("a reload of the settings", () => {
  test("applies reloadable changes and names keys that need a restart", async () => {
    const cwd = await directoryWith({
      "headrace.yaml": "port: 1\nengine: { threads: 1, demo: false }\nlimits: { depth: 9 }\n",
    });
    const running = await load({ cwd, flags: { port: "5" } });
    await Bun.write(
      running.file.path,
      "engine: { threads: 2, demo: false }\nlog_format: json\nlimits: { depth: 10 }\nguardrails: [{ name: g, kind: secrets }]\nmodels: [{ id: m, policies: { guardrails: [g] } }]\ncache: { max_bytes: 2000000 }\n",
    );
    const changed = await readConfigFile({ path: running.file.path, env: {}, cwd });
    expect(changed.limits.depth).toBe(10);
    expect(changed.models[0]?.policies).toEqual({ guardrails: ["g"] });
    expect(changed.guardrails).toMatchObject([{ name: "g", kind: "secrets" }]);
    expect(keysThatNeedRestart(running, changed)).toEqual(["cache", "engine.threads", "log_format", "port"]);
    expect(Object.isFrozen(changed.limits)).toBe(true);
  });

  test("needs no restart without changes of start-up keys", async () => {
    const cwd = await directoryWith({ "headrace.yaml": "port: 1\n" });
    const running = await load({ cwd });
    await Bun.write(running.file.path, "# moved\nport: 1\ncors: { origins: ['*'] }\n");
    expect(keysThatNeedRestart(running, await readConfigFile({ path: running.file.path, env: {}, cwd }))).toEqual([]);
  });

  test("refuses a wrong and a vanished file on reload", async () => {
    const cwd = await directoryWith({ "headrace.yaml": "limits: { depth: x }\n" });
    const path = join(cwd, "headrace.yaml");
    expect((await refusal(readConfigFile({ path, env: {}, cwd }))).message).toStartWith(
      "headrace.yaml:1:18  limits.depth: ",
    );
    await rm(path);
    expect((await refusal(readConfigFile({ path, env: {}, cwd }))).message).toContain("does not exist");
  });
});

describe("settings of other commands", () => {
  test("reads the data directory without variables that only the server has", async () => {
    const yaml = "data_dir: d\nupstreams: [{ name: a, url: http://h/v1, api_key: '${ONLY_ON_THE_SERVER}' }]\n";
    const cwd = await directoryWith({ "headrace.yaml": yaml });
    expect(await loadDataDir({ cwd, env: {} })).toBe(join(cwd, "d"));
    expect(await loadDataDir({ cwd, env: { HEADRACE_DATA_DIR: "/e" } })).toBe("/e");
    expect(await loadDataDir({ cwd, env: { HEADRACE_DATA_DIR: "/e" }, flags: { dataDir: "f" } })).toBe(join(cwd, "f"));
    expect(await loadDataDir({ cwd: await directoryWith(), env: { HOME: "/h" } })).toBe("/h/.local/share/headrace");
  });

  test.each(["data_dir: [", "data_dir: 5", "data_dir: ${NOPE}"])(
    "refuses a file with an invalid data directory: %p",
    async (yaml) => {
      const cwd = await directoryWith({ "headrace.yaml": yaml });
      expect((await refusal(loadDataDir({ cwd, env: {} }))).message).toStartWith("headrace.yaml:1:");
    },
  );

  test("reads the variables of Hugging Face for pull and never shows the token", () => {
    expect(loadPullSource({})).toEqual({ endpoint: "https://huggingface.co", token: undefined });
    expect(loadPullSource({ HF_ENDPOINT: "https://mirror.example.com/hf/", HF_TOKEN: "t\n" })).toEqual({
      endpoint: "https://mirror.example.com/hf",
      token: "t",
    });
    expect(() => loadPullSource({ HF_ENDPOINT: "mirror" })).toThrow("HF_ENDPOINT: must be");
    expect(() => loadPullSource({ HF_TOKEN: "canary x" })).toThrow(/^HF_TOKEN: (?!.*canary)/);
  });
});
