// `headrace connect` against a real server: what it shows, what it writes into the files of clients, and how that is taken back.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type CommandOutcome, runCommand } from "../fixtures/command-line.ts";
import { filesIn } from "../hostile/data-files.ts";
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

test("lists all clients with their configuration files on this machine", async () => {
  const { stdout, code } = await connect("--json");
  const listed = JSON.parse(stdout) as { id: string; file: string | null }[];
  expect(code).toBe(0);
  expect(listed.map(({ id }) => id)).toEqual(["codex", "claude", "opencode", "openai", "anthropic"]);
  expect(listed[0]?.file).toBe(join(home, ".codex", "config.toml"));
  expect(listed[2]?.file).toBe(join(home, "settings", "opencode", "opencode.json"));
});

test("prints configuration to paste that names the only model and contains no key", async () => {
  for (const client of ["codex", "claude", "opencode", "openai", "anthropic"]) {
    const { stdout, stderr, code } = await connect(client);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout + stderr).not.toContain(server.key);
    if (client !== "openai" && client !== "anthropic") expect(stdout).toContain("upstream-model");
  }
  expect((await connect("openai")).stdout).toBe(
    `export OPENAI_BASE_URL=${server.baseUrl}\nexport OPENAI_API_KEY="$(headrace connect --print-key --data-dir ${server.dataDir})"\n`,
  );
  expect((await connect("--print-key")).stdout).toBe(`${server.key}\n`);
});

test("asks the same server for the key in configurations that fetch it", async () => {
  expect((await connect("codex")).stdout).toContain(
    `HEADRACE_API_KEY="$(headrace connect --print-key --data-dir ${server.dataDir})"`,
  );
  expect((await connect("codex", "--base-url", server.baseUrl)).stdout).toContain(
    `"$(headrace connect --print-key --base-url ${server.baseUrl} --data-dir ${server.dataDir})"`,
  );
  const { stderr } = await connect("claude");
  expect(stderr).toContain(
    `put in its place what this prints: headrace connect --print-key --data-dir ${server.dataDir}`,
  );
});

describe("--write", () => {
  test("shows the change without the key, backs up the file, and keeps other settings", async () => {
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

  test("asks for confirmation, and writes nothing without a terminal", async () => {
    const { stderr, code } = await connect("codex", "--write");
    expect(code).toBe(2);
    expect(stderr).toContain("add --yes");
    expect(existsSync(join(home, ".codex"))).toBe(false);
  });

  test("creates a missing configuration file, and removes it on undo", async () => {
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

  test("writes the target of a symbolic link and keeps the link", async () => {
    const real = place("dotfiles", "opencode.jsonc");
    writeFileSync(real, "// mine\n{}\n");
    symlinkSync(real, place("settings", "opencode", "opencode.jsonc"));
    expect((await connect("opencode", "--write", "--yes")).code).toBe(0);
    expect(readFileSync(real, "utf8")).toStartWith("// mine\n");
    expect(readFileSync(real, "utf8")).toContain('"headrace/upstream-model"');
  });

  test("restores an unchanged configuration file to the byte and mode on undo, and removes the backup", async () => {
    for (const [client, path, text] of [
      ["codex", [".codex", "config.toml"], '# mine\r\nmodel = "gpt-5" # fast\r\n\r\n[profiles.x]\r\nmodel = "o3"'],
      ["claude", [".claude", "settings.json"], '{"env": {"A":"b"},\n  "c": [ 1,2 ]}'],
      ["opencode", ["settings", "opencode", "opencode.json"], '{ /* mine */ "model": "x/y", }'],
    ] as const) {
      const file = place(...path);
      writeFileSync(file, text, { mode: 0o640 });
      for (const model of ["upstream-model", "claude-opus-5"]) {
        expect((await connect(client, "--write", "--yes", "--model", model)).code).toBe(0);
        expect(readFileSync(`${file}.before-headrace`, "utf8")).toBe(text);
        expect(statSync(file).mode & 0o777).toBe(client === "claude" ? 0o600 : 0o640);
      }
      const { stderr, code } = await connect(client, "--undo", "--yes");
      expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("is as it was before") });
      expect(readFileSync(file, "utf8")).toBe(text);
      expect(statSync(file).mode & 0o777).toBe(0o640);
      expect(readdirSync(dirname(file))).toEqual([basename(file)]);
    }
  });

  test("keeps later edits of a configuration file on undo, and removes our keys", async () => {
    const file = place(".claude", "settings.json");
    writeFileSync(file, '{ "a": 1 }');
    await connect("claude", "--write", "--yes");
    writeFileSync(file, readFileSync(file, "utf8").replace('"a": 1', '"a": 2'));
    await connect("claude", "--write", "--yes", "--model", "claude-opus-5");
    const { stderr } = await connect("claude", "--undo", "--yes");
    expect(stderr).toContain("What was written for Claude Code is taken out; what else was changed since stays.");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ a: 2 });
    for (const left of filesIn(home)) expect(readFileSync(left, "utf8")).not.toContain(server.key);
  });

  test("hides values whose name says secret", async () => {
    const file = place(".claude", "settings.json");
    writeFileSync(file, '{ "env": { "ANTHROPIC_AUTH_TOKEN": "sk-ant-CANARY", "OTHER_API_KEY": "CANARY-CANARY" } }');
    const { stderr } = await connect("claude", "--write", "--yes");
    expect(stderr).toContain('"ANTHROPIC_AUTH_TOKEN": "sk-a…"');
    expect(stderr).not.toContain("CANARY-CANARY");
    expect((await connect("codex", "--write", "--yes")).stderr).toContain('env_key = "HEADRACE_API_KEY"');
  });

  test.each<[what: string, make: (file: string) => void, reason: RegExp]>([
    ["that is protected", (file) => chmodSync(file, 0o444), /is protected from being written/],
    [
      "that leads to nothing",
      (file) => {
        unlinkSync(file);
        symlinkSync("/nowhere/x", file);
      },
      /is a link to a file/,
    ],
    ["that is another user's", (file) => chownSync(file, 12_345, 12_345), /belongs to another user/],
    [
      "that would be made in the folder of another user",
      (file) => {
        unlinkSync(file);
        chownSync(dirname(file), 12_345, 12_345);
      },
      /belongs to another user/,
    ],
  ])("leaves a configuration file %s unchanged", async (what, make, reason) => {
    // Only root may give a file to somebody else.
    if (what.includes("another user") && process.getuid?.() !== 0) return;
    const file = place(".codex", "config.toml");
    writeFileSync(file, "a = 1\n");
    make(file);
    const { code, stderr } = await connect("codex", "--write", "--yes");
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringMatching(reason) });
    expect(stderr).toContain("Nothing was changed.");
    expect(readdirSync(dirname(file)).filter((name) => name !== "config.toml")).toEqual([]);
    expect((await connect("codex", "--undo", "--yes")).stderr).toContain("Nothing was written for Codex");
  });

  test("keeps edits made while the confirmation prompt is open", async () => {
    const file = place(".codex", "config.toml");
    writeFileSync(file, "a = 1\n");
    const env = { HOME: home, XDG_CONFIG_HOME: join(home, "settings") };
    const { code, stderr } = await runCommand(["connect", "codex", "--write", "--data-dir", server.dataDir], {
      ...{ env, configFolder: join(home, "own"), isTTY: true, answers: ["y"] },
      onQuestion: () => writeFileSync(file, "a = 2\n"),
    });
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("was changed meanwhile") });
    expect(readFileSync(file, "utf8")).toBe("a = 2\n");
  });

  test("names a broken configuration file and its error, and changes nothing", async () => {
    const file = place(".claude", "settings.json");
    writeFileSync(file, '{\n  "env": {\n');
    const { stderr, code } = await connect("claude", "--write", "--yes");
    expect(code).toBe(1);
    expect(stderr).toContain(`${file}: line 3: close brace expected`);
    expect(readFileSync(file, "utf8")).toBe('{\n  "env": {\n');
    expect((await connect("openai", "--write", "--yes")).stderr).toContain("read variables alone");
  });
});

describe("--tools", () => {
  const url = () => `${server.url}/mcp`;
  const written = {
    codex: [".codex/config.toml", ["mcp_servers"], () => ({ bearer_token_env_var: "HEADRACE_API_KEY", url: url() })],
    // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the client puts the variable in
    claude: [
      ".claude.json",
      ["mcpServers"],
      () => ({ type: "http", url: url(), headers: { Authorization: "Bearer ${HEADRACE_API_KEY}" } }),
    ],
    // biome-ignore-end lint/suspicious/noTemplateCurlyInString: the client puts the variable in
    opencode: [
      "settings/opencode/opencode.json",
      ["mcp"],
      () => ({
        ...{ type: "remote", url: url(), enabled: true, oauth: false },
        headers: { Authorization: "Bearer {env:HEADRACE_API_KEY}" },
      }),
    ],
  } as const;
  const parsed = (text: string) => (text.startsWith("{") ? JSON.parse(text) : Bun.TOML.parse(text));

  test.each(Object.entries(written))(
    "configures the MCP tools in %s without writing the key to a file",
    async (id, [path, at, entry]) => {
      const file = join(home, path);
      const shown = await connect(id, "--tools");
      expect(parsed(shown.stdout.split("export ")[0] ?? "")[at[0]]).toEqual({ headrace: entry() });
      const { code, stdout, stderr } = await connect(id, "--tools", "--write", "--yes");
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stdout).toBe(`export HEADRACE_API_KEY="$(headrace connect --print-key --data-dir ${server.dataDir})"\n\n`);
      expect(parsed(readFileSync(file, "utf8"))).toEqual({ [at[0]]: { headrace: entry() } });
      for (const own of filesIn(home)) expect(readFileSync(own, "utf8")).not.toContain(server.key);
      expect((await connect(id, "--tools", "--undo", "--yes")).stderr).toContain("is as it was before");
      expect(existsSync(file)).toBe(false);
    },
  );

  test("undoes a model and tools in one file together, to the byte", async () => {
    const file = place(".codex", "config.toml");
    const before = '# mine\n[mcp_servers.mine]\nurl = "http://127.0.0.1/x"\n';
    writeFileSync(file, before);
    expect((await connect("codex", "--write", "--yes", "--model", "upstream-model")).code).toBe(0);
    expect((await connect("codex", "--tools", "--write", "--yes")).code).toBe(0);
    const { mcp_servers: servers, model } = parsed(readFileSync(file, "utf8"));
    expect({ names: Object.keys(servers), model }).toEqual({ names: ["mine", "headrace"], model: "upstream-model" });
    expect((await connect("codex", "--undo", "--yes")).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(readdirSync(dirname(file))).toEqual([basename(file)]);
  });

  test("refuses a key without tool access before writing anything", async () => {
    const made = await server.request("/v1/keys", { body: { name: "chat", scopes: ["chat:write"] } });
    const { key } = (await made.json()) as { key: string };
    const env = { HOME: home, HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: key };
    const { code, stderr } = await runCommand(["connect", "claude", "--tools", "--write", "--yes"], { env });
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("tools:use") });
    expect(existsSync(join(home, ".claude.json"))).toBe(false);
  });

  test("prints SDK code that connects to the MCP tools", async () => {
    expect(await connect("openai", "--tools")).toMatchObject({ code: 2, stderr: expect.stringContaining("in code") });
  });
});

test("refuses an unknown client or model and lists the known ones", async () => {
  expect(await connect("emacs")).toMatchObject({ code: 2, stderr: expect.stringContaining("codex, claude, opencode") });
  const model = await connect("codex", "--model", "gpt-9");
  expect(model).toMatchObject({ code: 2, stderr: expect.stringContaining("It may use upstream-model.") });
});
