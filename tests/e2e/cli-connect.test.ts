// `headrace connect` against a real server: what it shows, what it writes into the files of clients, and how that is taken back.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type CommandOutcome, runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let home = "";

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({
    yaml: upstreamYaml(
      upstream,
      `models:
  - id: upstream-model
    context: 131072
    aliases: [claude-opus-5]
    deployments: [{ upstream: up, model: upstream-model }]
`,
    ),
  });
});
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "headrace-connect-"));
});
afterEach(() => rmSync(home, { recursive: true }));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function connect(...args: string[]): Promise<CommandOutcome> {
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, "settings") };
  return runCommand(["connect", ...args, "--data-dir", server.dataDir], { env, configFolder: join(home, "own") });
}

/** Below the home, with the folders that it needs. */
function place(...path: string[]): string {
  const file = join(home, ...path);
  mkdirSync(dirname(file), { recursive: true });
  return file;
}

test("all clients are listed, with the files that they have on this machine", async () => {
  const { stdout, code } = await connect("--json");
  const listed = JSON.parse(stdout) as { id: string; file: string | null }[];
  expect(code).toBe(0);
  expect(listed.map(({ id }) => id)).toEqual(["codex", "claude", "opencode", "openai", "anthropic"]);
  expect(listed[0]?.file).toBe(join(home, ".codex", "config.toml"));
  expect(listed[2]?.file).toBe(join(home, "settings", "opencode", "opencode.json"));
});

test("what is shown can be pasted, names the only model, and has no key in it", async () => {
  for (const client of ["codex", "claude", "opencode", "openai", "anthropic"]) {
    const { stdout, stderr, code } = await connect(client);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout + stderr).not.toContain(server.key);
    if (client !== "openai" && client !== "anthropic") expect(stdout).toContain("upstream-model");
  }
  expect((await connect("openai")).stdout).toBe(
    `export OPENAI_BASE_URL=${server.baseUrl}\nexport OPENAI_API_KEY="$(headrace connect --print-key)"\n`,
  );
  expect((await connect("--print-key")).stdout).toBe(`${server.key}\n`);
});

describe("--write", () => {
  test("shows the change without the key, keeps what was there beside the file, and leaves everything else", async () => {
    const file = place(".claude", "settings.json");
    const before = '{\n  "permissions": { "allow": ["Bash(ls:*)"] }\n}\n';
    writeFileSync(file, before);
    const { stderr, code } = await connect("claude", "--write", "--yes");
    expect(code).toBe(0);
    expect(stderr).toContain('+     "ANTHROPIC_AUTH_TOKEN": "sk_dev_hr_…"');
    expect(stderr).not.toContain(server.key);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      permissions: { allow: ["Bash(ls:*)"] },
      env: { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_AUTH_TOKEN: server.key, ANTHROPIC_MODEL: "upstream-model" },
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(`${file}.before-headrace`, "utf8")).toBe(before);
    expect((await connect("claude", "--write")).stderr).toContain("says so already");
    expect((await connect("claude", "--undo", "--yes")).code).toBe(0);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(JSON.parse(before));
  });

  test("asks first, and writes nothing where nobody can be asked", async () => {
    const { stderr, code } = await connect("codex", "--write");
    expect(code).toBe(2);
    expect(stderr).toContain("add --yes");
    expect(existsSync(join(home, ".codex"))).toBe(false);
  });

  test("makes a file that is missing, which is gone again when it is undone", async () => {
    const file = join(home, ".codex", "config.toml");
    expect((await connect("codex", "--write", "--yes", "--model", "claude-opus-5")).code).toBe(0);
    const { model, model_providers: providers } = Bun.TOML.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
    expect(model).toBe("claude-opus-5");
    expect(providers).toEqual({
      headrace: { name: "Headrace", base_url: server.baseUrl, env_key: "HEADRACE_API_KEY", wire_api: "responses" },
    });
    expect((await connect("codex", "--undo", "--yes")).code).toBe(0);
    expect(existsSync(file)).toBe(false);
    expect((await connect("codex", "--undo", "--yes")).stderr).toContain("Nothing was written for Codex");
  });

  test("writes what a link leads to, and leaves the link", async () => {
    const real = place("dotfiles", "opencode.jsonc");
    writeFileSync(real, "// mine\n{}\n");
    symlinkSync(real, place("settings", "opencode", "opencode.jsonc"));
    expect((await connect("opencode", "--write", "--yes")).code).toBe(0);
    expect(readFileSync(real, "utf8")).toStartWith("// mine\n");
    expect(readFileSync(real, "utf8")).toContain('"headrace/upstream-model"');
  });

  test("names the file and what is wrong with it, and changes nothing", async () => {
    const file = place(".claude", "settings.json");
    writeFileSync(file, '{\n  "env": {\n');
    const { stderr, code } = await connect("claude", "--write", "--yes");
    expect(code).toBe(1);
    expect(stderr).toContain(`${file}: line 3: CloseBraceExpected`);
    expect(readFileSync(file, "utf8")).toBe('{\n  "env": {\n');
    expect((await connect("openai", "--write", "--yes")).stderr).toContain("read variables alone");
  });
});

test("a client or a model that there is not is refused with those that there are", async () => {
  expect(await connect("emacs")).toMatchObject({ code: 2, stderr: expect.stringContaining("codex, claude, opencode") });
  const model = await connect("codex", "--model", "gpt-9");
  expect(model).toMatchObject({ code: 2, stderr: expect.stringContaining("It may use upstream-model.") });
});
