// `headrace config` against a real server: what is in effect and where it comes from, without secrets, and what the file has.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for variables.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CommandOutcome, runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";

const secrets = [
  "sk-canary-upstream",
  "canary-header",
  "canary-variable",
  "canary-argument",
  "canary-mail",
  "canary-query",
];
const yaml = (more = "") => `log_format: json
mail: { url: "smtp://post:canary-mail@127.0.0.1:2525", from: a@example.com }
upstreams:
  - { name: up, url: "http://127.0.0.1:9/v1", api_key: sk-canary-upstream, query: { key: canary-query } }
  - { name: cloud, url: "http://127.0.0.1:9/v1", api_key: "\${TEST_UP_KEY}" }
tools:
  servers:
    - { name: web, url: "http://127.0.0.1:9/mcp", headers: { authorization: "Bearer canary-header" } }
    - { name: files, command: "tool --token canary-argument", env: { TOKEN: canary-argument } }
engine:
  files: [{ model: m, engine: llama-server, arguments: "--api-key canary-argument" }]
models:
  - { id: fast, price: { input: 1, output: 2 }, deployments: [{ upstream: up }] }
tracing: { service_name: "gateway-\${TEST_UP_KEY}" }
${more}`;

let server: TestServer;
let operator: string;

beforeAll(async () => {
  process.env["TEST_UP_KEY"] = "canary-variable";
  server = await startHeadrace({ yaml: yaml(), env: { TEST_UP_KEY: "canary-variable" } });
  operator = await makeOperatorKey(server.dataDir);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  delete process.env["TEST_UP_KEY"];
});

function config(...args: string[]): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: operator, NO_COLOR: "1", TEST_UP_KEY: "x" };
  return runCommand(["config", ...args], { env, isTTY: true, columns: 80 });
}

const write = (text: string) => writeFileSync(server.config.file.path, text);

function expectNoSecret({ stdout, stderr }: CommandOutcome): void {
  for (const secret of secrets) expect(stdout + stderr).not.toContain(secret);
}

test("shows the values in effect with their sources and without secrets", async () => {
  const shown = await config();
  expect(shown).toMatchObject({ code: 0, stderr: "" });
  expectNoSecret(shown);
  expect(shown.stdout).toMatch(/^ {2}port +0 {2}\(--port\)$/m);
  expect(shown.stdout).toMatch(/^ {2}log_format +json {2}\(\S*headrace\.yaml:1\)$/m);
  expect(shown.stdout).toContain('  - name: up\n    url: http://127.0.0.1:9/v1\n    api_key: "[redacted]"');
  expect(shown.stdout).toContain("    api_key: ${TEST_UP_KEY}\n");
  expect(shown.stdout).toMatch(/^ {2}tracing\.service_name +\$\{TEST_UP_KEY\}$/m);
  expect(shown.stdout).not.toContain("retention:");
  const all = await config("show", "--all");
  expectNoSecret(all);
  expect(all.stdout).toContain("retention:");
  expect(all.stdout).toMatch(/^ {2}host +127\.0\.0\.1 {2}\(default\)$/m);
  const json = await config("show", "--json");
  expectNoSecret(json);
  expect(JSON.parse(json.stdout)).toMatchObject({
    ...{ object: "configuration", file: server.config.file.path, differences: [], problems: [] },
    sections: { models: [{ id: "fast", price: { input: 1, output: 2 } }], tools: { servers: [{ name: "web" }, {}] } },
  });
});

test("shows what the file has and the server does not use, and ends with 2", async () => {
  expect(await config("diff")).toMatchObject({ code: 0 });
  write(
    yaml("port: 7000\nhost: 127.0.0.2\n")
      .replace("output: 2", "output: 3")
      .replace("sk-canary-upstream", "sk-canary-upstream-2"),
  );
  const drift = await config("diff");
  expectNoSecret(drift);
  expect(drift.code).toBe(2);
  expect(drift.stdout).toMatch(/^models\[0\]\.price\.output +2 +3$/m);
  expect(drift.stdout).toMatch(/^host +- +127\.0\.0\.2 +needs a restart$/m);
  // The flag --port outranks the file, also after a restart.
  expect(drift.stdout).not.toContain("7000");
  expect(drift.stdout).toMatch(/^upstreams\[0\]\.api_key +\[redacted\] +\[redacted\]$/m);
  await server.reconfigure(yaml().replace("output: 2", "output: 3"));
  expect(await config("diff")).toMatchObject({ code: 0 });
  expect((await config("show")).stdout).toContain("output: 3");
  write(`${yaml()}hots: a\n`);
  const broken = await config("diff");
  expect(broken.code).toBe(2);
  expect(broken.stderr).toContain("hots: is not a known key");
  await server.reconfigure(yaml());
});

test("validates a file without a server, with the position and remedy of each error", async () => {
  const file = join(server.dataDir, "..", "new.yaml");
  writeFileSync(file, yaml());
  expect(await config("validate", file)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("2 upstreams, 1 models"),
  });
  writeFileSync(file, yaml("models: 3\nport: 70000\n").replace("models:\n", "tags:\n"));
  const wrong = await config("validate", file);
  expect(wrong.code).toBe(1);
  expect(wrong.stdout.replaceAll(/\s+/g, " ")).toContain(
    "port: must be a whole number from 0 to 65535 (got 70000). Fix:",
  );
  const problems = JSON.parse((await config("validate", file, "--json")).stdout).problems;
  expect(problems.length).toBeGreaterThan(1);
  expect(problems[0]).toMatchObject({ line: expect.any(Number), fix: expect.any(String) });
});
