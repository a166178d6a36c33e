// Every code block of the README and the guides is run, loaded or read as what it says it is.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { parse, stringify } from "yaml";
import { pythonFolder } from "../../../scripts/test-programs.mjs";
import { readConfigFile } from "../../../src/config/config.ts";
import { allow, type Browser, decideDevice, invite, setUp } from "../../support/browser.ts";
import { startHeadrace, type TestServer } from "../../support/headrace.ts";
import { operated } from "../../support/operated.ts";
import { type ScriptedUpstream, startUpstream } from "../../support/scripted-upstream.ts";
import { type Block, blocksOf, documents, root, typedIn } from "./blocks.ts";
import { elsewhere } from "./elsewhere.ts";
import { faultsOfTranscript, faultsOfValue } from "./shapes.ts";
import { type Outcome, Shell } from "./shell.ts";

const folder = mkdtempSync(join(tmpdir(), "headrace-blocks-"));
const blocks = documents.flatMap(blocksOf);
const elsewhereNames = Object.keys(elsewhere);
const isElsewhere = ({ name }: Block) => elsewhereNames.some((start) => name.startsWith(start));
const inDocument = (file: string, ...languages: string[]) =>
  blocks.filter((block) => block.file === file && languages.includes(block.language) && !isElsewhere(block));

let server: TestServer;
let upstream: ScriptedUpstream;
let olga: Browser;
let operatorKey: string;
/** Its tier has limits and quotas: a guide shows what is left of them. */
let limitedKey: string;
/** Ids that stand in the guides for those of whoever reads them. */
let ids: Record<string, string>;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.serves(["upstream-model", "gpt-4o-mini", "qwen3-coder"].map((id) => ({ id, object: "model" })));
  const yaml = `upstreams: [{ name: vllm, url: "${upstream.url}" }]
models: [{ id: assistant, deployments: [{ upstream: vllm, model: upstream-model }] }]
`;
  server = await startHeadrace({ yaml, demo: true });
  const { operator, admin } = await operated(server);
  operatorKey = operator;
  olga = await setUp(server);
  await invite(olga, { person: { email: "ada@example.com", name: "Ada", password: "lamp gravel otter seven" } });
  const person = (await admin("GET", "/people?email=ada@example.com")).body.data[0].id;
  const quotas = { monthly_tokens: 100_000, monthly_spend: 5 };
  await admin("PUT", "/tiers/trial", { requests_per_minute: 10, tokens_per_minute: 100_000, ...quotas });
  const account = (await admin("POST", "/accounts", { name: "Guides", tier: "trial" })).body.id;
  const made = await server.request("/v1/keys", { body: { name: "some key", scopes: ["models:read"] } });
  const { id: key } = (await made.json()) as { id: string };
  ids = { usr: person, acct: account, key };
  const limited = { name: "limited", environment: "live", scopes: ["chat:write", "usage:read"] };
  limitedKey = (await admin("POST", `/accounts/${account}/keys`, limited)).body.key;
  // A backup counts apps as well, whichever guide is run first.
  await publicApp();
  // Usage of two keys is what the guides show.
  await ask(server.key);
});

afterAll(async () => {
  await server.close();
  await upstream[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** One streamed answer of the demo model. */
async function ask(bearer: string): Promise<void> {
  const body = { model: "tiny-demo", stream: true, messages: [{ role: "user", content: "Who are you?" }] };
  const headers = { authorization: `Bearer ${bearer}` };
  const answer = await server.request("/v1/chat/completions", { headers, body });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("[DONE]")]);
}

/** Places of the guides become those of this test. */
function here(text: string): string {
  return text
    .replaceAll(/http:\/\/127\.0\.0\.1:7545|https:\/\/ai\.example\.com/g, server.url)
    .replaceAll("http://10.0.0.6:8000/v1", upstream.url)
    .replaceAll("/mnt/backups", join(folder, "backups"))
    .replaceAll("/var/lib/headrace", server.dataDir)
    .replaceAll("sk_live_hr_…", server.key)
    .replaceAll(/\b(usr|acct|key)_(?:…|[0-9a-f]{8}-[0-9a-f-]{27})/g, (whole, kind: string) => ids[kind] ?? whole);
}

const folderOf = (file: string) => join(folder, file.replaceAll("/", "-"));

function shellFor(file: string): Shell {
  const home = folderOf(file);
  mkdirSync(home, { recursive: true });
  return new Shell(home, server.dataDir, {
    ...{ OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: server.key, KEY: server.key, HEADRACE: server.url },
    ...{ HEADRACE_BASE_URL: `${server.url}/v1`, OPERATOR_KEY: operatorKey },
    // A command that operators alone may run has their key, all others the first one.
    HEADRACE_API_KEY: operatorKey,
    HEADRACE_PORT: new URL(server.url).port,
  });
}

/** What stands in place of what a reader has from before. */
async function prepare(shell: Shell, file: string): Promise<void> {
  if (file === "docs/operating.md") writeFileSync(join(folderOf(file), "new.yaml"), "upstreams: []\n");
  if (file === "docs/command-line.md") writeFileSync(join(folderOf(file), "key.txt"), server.key);
  const needsAdmin = ["docs/upstreams.md", "docs/routing.md"].includes(file);
  const definition = blocksOf("docs/operating.md").find(({ text }) => text.startsWith("admin()"));
  if (needsAdmin) await shell.run(definition?.text ?? "");
}

const withCommands = documents.filter((file) => {
  return inDocument(file, "sh", "bash", "console", "").some((block) => block.language !== "" || typedIn(block));
});

test.each(withCommands)(
  "runs the commands of the guide %s with the promised results",
  async (file) => {
    const shell = shellFor(file);
    await prepare(shell, file);
    for (const block of inDocument(file, "sh", "bash", "console", "")) {
      const commands = block.language === "sh" || block.language === "bash" ? block.text : typedIn(block);
      if (commands === undefined) continue;
      const outcome = await shell.run(here(commands), await before(block, shell));
      expect(outcome.code, `${block.name}\n${outcome.stdout}\n${outcome.stderr}`).toBe(0);
      expect([block.name, ...faultsOf(block, outcome)]).toEqual([block.name]);
      after(block, outcome);
    }
  },
  60_000,
);

/** What differs between what the guide shows, in the transcript or in JSON after the commands, and what was printed. */
function faultsOf(block: Block, { stdout, stderr }: Outcome): string[] {
  const next = blocks[blocks.indexOf(block) + 1];
  const shown = next?.file === block.file && next.language === "json" && next.text.startsWith("{") ? next : undefined;
  if (shown && block.text.includes("curl")) return faultsOfValue(JSON.parse(shown.text), JSON.parse(stdout));
  return typedIn(block) === undefined ? [] : faultsOfTranscript(block.text, [stdout, stderr]);
}

interface App {
  client_id: string;
  client_secret: string;
}

let app: App;
let television: App;
let tokens: Record<string, string> = {};
let device: Record<string, string> = {};

/** A television has no secret to keep. */
async function publicApp(): Promise<App> {
  const body = { name: "Television", type: "public", redirect_uris: ["https://tv.example/callback"] };
  return (await (await server.request("/v1/apps", { body })).json()) as App;
}

/** What the person of a flow does in a browser before a block, and what the app has from it. */
async function before({ file, text }: Block, shell: Shell): Promise<Record<string, string>> {
  if (text.startsWith("$ npx headrace status")) return await limitedFor();
  if (file !== "docs/apps.md" || !app) return {};
  const own = { CLIENT_ID: app.client_id, CLIENT_SECRET: app.client_secret };
  if (text.includes("grant_type=authorization_code")) {
    const page = blocksOf(file).find((block) => block.text.startsWith("$HEADRACE/oauth/authorize"))?.text ?? "";
    const address = page
      .replaceAll(/\s+/g, "")
      .replace("$HEADRACE", server.url)
      .replace("app_…", app.client_id)
      .replace("$STATE", shell.variable("STATE"))
      .replace("$CHALLENGE", shell.variable("CHALLENGE"));
    const answer = await allow(olga, address);
    expect(answer.searchParams.get("state")).toBe(shell.variable("STATE"));
    return { ...own, CODE: answer.searchParams.get("code") ?? "" };
  }
  if (text.includes("/oauth/device_authorization")) {
    television = await publicApp();
    return { CLIENT_ID: television.client_id };
  }
  if (text.includes("device_code=")) {
    await decideDevice(olga, device["user_code"] ?? "");
    return { CLIENT_ID: television.client_id, DEVICE_CODE: device["device_code"] ?? "" };
  }
  return { ...own, ACCESS_TOKEN: tokens["access_token"] ?? "", REFRESH_TOKEN: tokens["refresh_token"] ?? "" };
}

/** So many requests that they are not all left again by the time that a busy machine looks. */
async function limitedFor(): Promise<Record<string, string>> {
  await Promise.all(Array.from({ length: 9 }, () => ask(limitedKey)));
  return { HEADRACE_API_KEY: limitedKey };
}

function after({ file, text }: Block, { stdout }: Outcome): void {
  if (file !== "docs/apps.md") return;
  if (text.includes('OPENAI_BASE_URL/apps"')) app = JSON.parse(stdout) as App;
  if (text.includes("/oauth/token")) tokens = JSON.parse(stdout) as Record<string, string>;
  if (text.includes("/oauth/device_authorization")) device = JSON.parse(stdout) as Record<string, string>;
}

test.each(
  blocks.filter((block) => block.language === "yaml" && !isElsewhere(block)).map((block) => [block.name, block]),
)("accepts the configuration %s", async (_, block) => {
  const part = parse(block.text) as Record<string, unknown>;
  const path = join(folder, "headrace.yaml");
  writeFileSync(path, stringify(wholeConfiguration(part)));
  const names = [...block.text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => [name, "smtps://smtp.example.com"]);
  const env = { HEADRACE_PUBLIC_URL: "https://ai.example.com", ...Object.fromEntries(names) };
  await readConfigFile({ path, env });
});

test("plans the documents of the guide to declared state", async () => {
  const file = "docs/declared-state.md";
  const shell = shellFor(file);
  const documentsHere = blocks.filter((block) => block.file === file && block.language === "yaml");
  expect(documentsHere.length).toBe(2);
  // An upstream of this name is in the server's configuration file, which takes precedence.
  const texts = documentsHere.map(({ text }) => text.replaceAll("vllm", "documented"));
  mkdirSync(join(folderOf(file), "shop"), { recursive: true });
  for (const [at, text] of texts.entries()) writeFileSync(join(folderOf(file), "shop", `${at}.yaml`), text);
  const planned = await shell.run("VLLM_KEY=sk-x headrace apply --plan -f shop/", {});
  expect([planned.code, planned.stderr]).toEqual([0, ""]);
  expect(planned.stdout).toContain("Plan: 5 to create.");
});

/** A part of a file, with what it names and does not say itself. */
function wholeConfiguration(part: Record<string, unknown>): Record<string, unknown> {
  // A part of one entry of a list.
  if (part["price"])
    return wholeConfiguration({
      models: [{ id: "assistant", deployments: [{ upstream: "vllm", model: "x" }], ...part }],
    });
  if (part["quotas"]) return { tiers: [{ name: "pro", requests_per_minute: 1, tokens_per_minute: 1, ...part }] };
  type Model = { id: string; deployments: { upstream: string }[]; fallbacks?: string[] };
  const models = (part["models"] ?? []) as Model[];
  const upstreams = (part["upstreams"] ?? []) as { name: string }[];
  const named = new Set(models.flatMap(({ deployments }) => deployments.map(({ upstream: name }) => name)));
  for (const { name } of upstreams) named.delete(name);
  named.delete("built-in");
  const missing = [...named].map((name) => ({ name, url: "http://10.0.0.5:8000/v1" }));
  const known = new Set(models.map(({ id }) => id));
  const fallbacks = models.flatMap((model) => model.fallbacks ?? []).filter((id) => !known.has(id));
  const fallbackModels = fallbacks.map((id) => ({ id, deployments: models[0]?.deployments ?? [] }));
  return {
    ...part,
    ...(models.length > 0 && { models: [...models, ...fallbackModels] }),
    ...(missing.length > 0 && { upstreams: [...upstreams, ...missing] }),
  };
}

test.each(
  blocks.filter((block) => block.language === "json" && !isElsewhere(block)).map((block) => [block.name, block]),
)("checks that %s is JSON and has only fields that the API knows", async (_, { text }) => {
  const value = JSON.parse(text.trim().startsWith("{") ? text : `{${text}}`) as Record<string, unknown>;
  const document = (await (await server.request("/openapi.json")).json()) as {
    components: { schemas: Record<string, Schema> };
  };
  const schemas = Object.values(document.components.schemas).filter(
    ({ properties }) => properties?.["object"]?.const !== undefined && properties["object"].const === value["object"],
  );
  if (typeof value["object"] !== "string" || value["object"] === "list") return;
  expect(schemas.length, String(value["object"])).toBeGreaterThan(0);
  const fits = schemas.some(({ properties = {} }) => Object.keys(value).every((name) => name in properties));
  expect(fits, text).toBe(true);
});

interface Schema {
  const?: unknown;
  properties?: Record<string, Schema>;
}

test("streams an answer with the README's first programs and the published SDKs", async () => {
  const env = { PATH: process.env["PATH"] ?? "", OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: server.key };
  for (const [language, command] of [
    ["python", [join(pythonFolder, "bin/python"), "-c"]],
    ["ts", [process.execPath, "-e"]],
  ] as const) {
    const [block] = inDocument("README.md", language);
    const child = Bun.spawn([...command, block?.text ?? ""], { cwd: root, env, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect([language, await child.exited, stderr]).toEqual([language, 0, ""]);
    expect(stdout).toContain("demo model");
  }
});

test("verifies signed webhooks with the guide's receiver, which throws on others", async () => {
  const [block] = inDocument("docs/notices.md", "js");
  const secret = `whsec_${Buffer.from("a secret of thirty-two bytes ok.").toString("base64")}`;
  const at = new Date();
  const body = '{"type":"quota.threshold"}';
  const signature = new Webhook(secret).sign("evt_1", at, body);
  for (const [text, code] of [
    [body, 0],
    [`${body} `, 1],
  ] as const) {
    const headers = {
      "webhook-id": "evt_1",
      "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
      "webhook-signature": signature,
    };
    const program = `const body = ${JSON.stringify(text)}, headers = ${JSON.stringify(headers)};\n${block?.text ?? ""}`;
    const env = { HEADRACE_WEBHOOK_SECRET: secret };
    expect(Bun.spawnSync([process.execPath, "-e", program], { cwd: root, env }).exitCode).toBe(code);
  }
});

test("checks that example answers have JSON bodies and known error codes", async () => {
  const codes = await Bun.file(join(root, "docs/reference/errors.md")).text();
  const answers = blocks.filter(
    (block) => ["", "http"].includes(block.language) && /^(?:HTTP\/|POST \/\w+ HTTP|\{)/.test(block.text),
  );
  expect(answers.length).toBeGreaterThan(4);
  for (const { text, name } of answers) {
    const body = JSON.parse(text.slice(text.search(/^\{/m))) as { error?: { code: string } };
    if (!body.error) continue;
    expect(codes, name).toContain(`\`${body.error.code}\``);
    const members = Object.keys(body.error).filter((member) => member !== "param");
    expect(members, name).toEqual(["message", "type", "code"]);
  }
});

test("refuses the fourth request of a key within a minute, as the README shows", async () => {
  const [, block] = blocks.filter(({ file, text }) => file === "README.md" && /^\$ npx headrace keys|^HTTP/.test(text));
  const body = { name: "ci", scopes: ["chat:write"], rate_limit: 3 };
  const { key } = (await (await server.request("/v1/keys", { body })).json()) as { key: string };
  for (let request = 0; request < 3; request++) await ask(key);
  const refused = await server.request("/v1/chat/completions", {
    headers: { authorization: `Bearer ${key}` },
    body: { model: "tiny-demo", messages: [{ role: "user", content: "Who are you?" }] },
  });
  const head = `HTTP/1.1 ${refused.status} ${refused.statusText}`;
  const headers = [...refused.headers].map(([name, value]) => `${name}: ${value}`);
  const printed = [head, ...headers, await refused.text()].join("\n");
  expect(faultsOfTranscript(`${block?.text}\n…`, [printed])).toEqual([]);
});

test("requires a reason for each skipped code block, and each skipped block to exist", () => {
  const gone = elsewhereNames.filter((start) => !blocks.some(({ name }) => name.startsWith(start)));
  expect(gone).toEqual([]);
  const seen = (block: Block) =>
    isElsewhere(block) ||
    ["sh", "bash", "yaml", "json", "ts", "python", "js"].includes(block.language) ||
    typedIn(block) !== undefined ||
    /^(?:HTTP\/|POST \/\w+ HTTP|\{|\$HEADRACE\/oauth\/authorize)/.test(block.text);
  expect(blocks.filter((block) => !seen(block)).map(({ name }) => name)).toEqual([]);
});
