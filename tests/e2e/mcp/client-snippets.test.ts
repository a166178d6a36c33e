// What the dashboard has people type to connect their clients of tools does so, as it is, and so does the command line.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clientSnippets } from "../../../web/pages/tools/client-snippets.ts";
import { runCommand } from "../../fixtures/command-line.ts";
import { leaveBrowser } from "../../support/chromium.ts";
import { type PeopleWorld, startPeopleWorld } from "../../support/mcp/people-world.ts";
import { signInByTyping, typed } from "../../support/mcp/tool-clients.ts";

let world: PeopleWorld;

beforeAll(async () => {
  world = await startPeopleWorld("oauth: { client_documents: off }\n");
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

function snippet(id: string): string {
  return clientSnippets(`${world.model.server.url}/mcp`).find((one) => one.id === id)?.code ?? "";
}

test.each([
  ["claude", "claude mcp list", /headrace: \S+ \(HTTP\) - ✔ Connected/],
  ["codex", "codex mcp list", /headrace +\S+ +- +enabled +OAuth/],
])("signs %s in with the documented shell commands", async (id, list, signedIn) => {
  await using ann = await world.join(id, ["new"]);
  await signInByTyping(ann.place, snippet(id));
  expect(await typed(ann.place, list)).toMatch(signedIn);
});

test.each([
  ["claude", "claude mcp list", /headrace: \S+ \(HTTP\) - ✔ Connected/],
  ["codex", "codex mcp list", /headrace +\S+ +HEADRACE_API_KEY +enabled +Bearer token/],
  ["opencode", "opencode mcp list", /✓ headrace/],
])("connects %s with a key by headrace connect --tools", async (id, list, connected) => {
  await using ann = await world.join(`${id}-key`, ["new"]);
  const { home, model } = ann.place;
  const env = { HOME: home.home, HEADRACE_BASE_URL: model.server.baseUrl, HEADRACE_API_KEY: model.server.key };
  const args = ["connect", id, "--tools", "--write", "--yes"];
  const { code, stderr } = await runCommand(args, { env, configFolder: join(home.home, "headrace") });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(await typed(ann.place, list)).toMatch(connected);
});

test("signs opencode in with the documented file and shell commands", async () => {
  await using ann = await world.join("olga", ["new"]);
  const folder = join(ann.place.home.home, ".config", "opencode");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "opencode.json"), snippet("opencode"));
  await signInByTyping(ann.place, "opencode mcp auth headrace");
  expect(await typed(ann.place, "opencode mcp list")).toContain("✓ headrace");
});

test("lists tools in the MCP inspector with the documented shell commands", async () => {
  await using ann = await world.join("ida", ["new"]);
  expect(await typed(ann.place, snippet("inspector"))).toContain("new_test_simple_text");
});

test("gives a program with the AI SDK its MCP tools", async () => {
  await using ann = await world.join("aida", ["new"]);
  const { home } = ann.place.home;
  symlinkSync(join(import.meta.dir, "..", "..", "..", "node_modules"), join(home, "node_modules"));
  const program = `${snippet("ai-sdk")}\nconsole.log(Object.keys(tools).join());\nawait client.close();\n`;
  writeFileSync(join(home, "program.ts"), program);
  expect(await typed(ann.place, `${process.execPath} program.ts`)).toContain("new_test_simple_text");
});
