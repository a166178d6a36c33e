// Tests changes of a client's configuration: settings are written, everything else stays as its owner wrote it, and all
// changes can be undone.
import { describe, expect, test } from "bun:test";
import { lineChanges } from "../terminal/line-changes.ts";
import { clients, type Target } from "./clients.ts";
import { isAsLeft, rememberedOf, undone } from "./connected.ts";
import { SettingsError, settingsFormats, withSettings } from "./settings-text.ts";

const target: Target = {
  baseUrl: "https://ai.example.com/v1",
  model: "gpt-oss",
  key: "sk_live_hr_key",
  context: 131_072,
};
const other: Target = { ...target, model: 'it\'s "odd"\\/ü', baseUrl: "http://127.0.0.1:7545/v1" };
const fileOf = (id: string) => {
  const file = clients.find((client) => client.id === id)?.file;
  if (!file) throw new Error(`${id} has no file`);
  return file;
};

const written: [client: string, text: string][] = [
  ["codex", ""],
  ["codex", "# only a comment\n"],
  ["codex", 'approval_policy = "on-request" # ask\r\n[tools]\r\nweb_search = true\r\n'],
  [
    "codex",
    `# my own
model = "gpt-5"  # fast, # and "good"
notify = ["a", "b"]

[profiles.x]
model = "o3"

[model_providers.other]
name = "Other"

# tools
[mcp_servers."a b"]
command = "x"
`,
  ],
  ["codex", '[model_providers.headrace]\nname = "Mine"\nbase_url = "http://old/v1"\nenv_key = "OLD"\n\n[zz]\na = 1\n'],
  ["claude", ""],
  ["claude", "{}\n"],
  [
    "claude",
    '{\n  "permissions": { "allow": ["Bash(ls:*)"] },\n  "env": { "FOO": "bar", "ANTHROPIC_MODEL": "opus" }\n}\n',
  ],
  ["opencode", ""],
  ["codex", '\ufeff# mine\r\nmodel = "gpt-5" # fast\r\n\r\n[profiles.x] # theirs\r\nmodel = "o3"'],
  ["claude", '\ufeff{\r\n\t"env": {\r\n\t\t"FOO": "bar"\r\n\t}\r\n}'],
  [
    "opencode",
    '{\n\t// my models\n\t"$schema": "https://opencode.ai/config.json",\n\t"provider": {\n\t\t"other": { "npm": "x" }, /* theirs */\n\t},\n}\n',
  ],
];

describe.each(written)("settings of %s in %j", (id, text) => {
  const { format: name, settings } = fileOf(id);
  const format = settingsFormats[name];

  test("adds all settings and keeps every other line and comment of the owner", () => {
    const changed = withSettings(format, text, settings(target));
    for (const { path, value } of settings(target)) {
      const found = path.reduce<unknown>(
        (table, one) => (table as Record<string, unknown>)[one],
        format.parse(changed),
      );
      expect(found).toEqual(value);
    }
    const gone = lineChanges(text.replaceAll("\r", ""), changed.replaceAll("\r", "")).filter(
      ({ sign }) => sign === "-",
    );
    const isOurs = /model\b|ANTHROPIC_MODEL|Mine|old\/v1|OLD|^\{\}$|"npm": "x"|"FOO": "bar"$|^\t?\}?,?$|theirs/;
    expect(gone.filter(({ line }) => !isOurs.test(line))).toEqual([]);
    for (const comment of text.match(/(?:# |\/\/ |\/\* )[a-z].*/g) ?? []) expect(changed).toContain(comment.trim());
  });

  test("uses the owner's line ends everywhere", () => {
    const changed = withSettings(format, text, settings(target));
    const ends = (of: string) => new Set(of.match(/\r?\n/g));
    expect(ends(changed)).toEqual(text.includes("\n") ? ends(text) : new Set(["\n"]));
  });

  test("changes nothing the second time, and replaces the model the third time", () => {
    const once = withSettings(format, text, settings(target));
    expect(withSettings(format, once, settings(target))).toBe(once);
    const third = withSettings(format, once, settings(other));
    expect(format.parse(third)).toEqual(format.parse(withSettings(format, text, settings(other))));
  });

  test("restores the owner's text when undone, also after two writes", () => {
    const file = "/file";
    const once = withSettings(format, text, settings(target));
    const first = rememberedOf(format, { text, after: once, file, settings: settings(target) }, undefined);
    const second = rememberedOf(format, { text: once, after: once, file, settings: settings(target) }, first);
    expect(second).toEqual(first);
    expect(isAsLeft(second, once, text)).toBe(true);
    expect([isAsLeft(second, `${once} `, text), isAsLeft(second, once, `${text} `)]).toEqual([false, false]);
    const edited = rememberedOf(format, { text: `${once} `, after: once, file, settings: settings(target) }, first);
    expect(isAsLeft(edited, once, text)).toBe(false);
    const { text: left, kept } = undone(format, once, second);
    expect(format.parse(left)).toEqual(format.parse(text));
    expect(kept).toEqual([]);
  });
});

test("keeps settings that were changed meanwhile when undone, and names them", () => {
  const { format: name, settings } = fileOf("claude");
  const format = settingsFormats[name];
  const once = withSettings(format, "{}", settings(target));
  const first = { text: "{}", after: once, file: "/file", settings: settings(target) };
  const remembered = rememberedOf(format, first, undefined);
  const edited = once.replace('"ANTHROPIC_MODEL": "gpt-oss"', '"ANTHROPIC_MODEL": "mine"');
  const { text, kept } = undone(format, edited, remembered);
  expect(format.parse(text)).toEqual({ env: { ANTHROPIC_MODEL: "mine" } });
  expect(kept).toEqual(["env.ANTHROPIC_MODEL"]);
});

test("undoes settings that were written for two purposes as a whole", () => {
  const { format: name, settings } = fileOf("codex");
  const tools = clients.find(({ id }) => id === "codex")?.tools?.file.settings({ url: "http://a/mcp", sendsKey: true });
  const format = settingsFormats[name];
  const text = '[mcp_servers.mine]\nurl = "http://b"\n';
  const one = withSettings(format, text, settings(target));
  const both = withSettings(format, one, tools ?? []);
  expect(both).toContain('[mcp_servers.headrace]\nurl = "http://a/mcp"\nbearer_token_env_var = "HEADRACE_API_KEY"\n');
  const first = rememberedOf(format, { text, after: one, file: "/f", settings: settings(target) }, undefined);
  const second = rememberedOf(format, { text: one, after: both, file: "/f", settings: tools ?? [] }, first);
  expect(isAsLeft(second, both, text)).toBe(true);
  const left = undone(format, `${both}# mine\n`, second);
  expect(left.kept).toEqual([]);
  expect(left.text.trimStart()).toBe(`${text}# mine\n`);
});

test("remembers no written key", () => {
  const { format: name, settings } = fileOf("claude");
  const remembered = rememberedOf(
    settingsFormats[name],
    { text: "", after: "", file: "/f", settings: settings(target) },
    undefined,
  );
  expect(JSON.stringify(remembered)).not.toContain(target.key);
});

describe("files that cannot be parsed or changed safely", () => {
  test.each<[string, string, RegExp]>([
    ["claude", '{\n  "env": {\n', /line 3: close brace expected/],
    ["claude", "[1]\n", /line 1: it is no JSON object/],
    ["codex", 'a = 1\n[x]\nmodel = "x\n', /^line 3: Unterminated string/],
    ["codex", "a = [\n  1,\n]\nb =\nc = 1\n", /^line 4: Missing value/],
    ["codex", 'model = """\nlong\n"""\n', /cannot be made safely/],
    ["codex", 'model_providers = { headrace = { name = "x" } }\n', /./],
    ["codex", 'model_providers.headrace.name = "x"\n', /./],
  ])("refuses the file of %s: %j", (id, text, reason) => {
    const { format: name, settings } = fileOf(id);
    const work = () => withSettings(settingsFormats[name], text, settings(target));
    expect(work).toThrow(SettingsError);
    expect(work).toThrow(reason);
  });
});
