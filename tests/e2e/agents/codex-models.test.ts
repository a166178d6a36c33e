// Codex takes the models of the gateway as they are listed for it: it knows their context, and sends them the gateway's prompt.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeProgramHome, type ProgramHome, programPath } from "../../support/agents/agent-program.ts";
import {
  agentModel,
  expectBooked,
  type ScriptedWorld,
  startAgentWorld,
  theEnd,
  thePrompt,
} from "../../support/agents/agent-world.ts";

let world: ScriptedWorld;
let home: ProgramHome;
beforeEach(async () => {
  world = await startAgentWorld("chat completions alone");
  home = makeProgramHome();
  world.reset();
  world.upstream.work({ steps: [{ tool: "exec_command", arguments: { cmd: "cat notes.txt" } }], end: theEnd });
});
afterEach(async () => {
  await home[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const unknown = /Model metadata for .* not found/;

/** Codex asks nobody for models whose key it has from the environment. */
const ways = {
  "asks for the list itself, where a command gives the key": (url: string) => `
[model_providers.headrace]
name = "Headrace"
base_url = "${url}/v1"
wire_api = "responses"
[model_providers.headrace.auth]
command = "printenv"
args = ["HEADRACE_API_KEY"]
`,
  "reads the list from a file": (url: string, file: string) => `model_catalog_json = "${file}"
[model_providers.headrace]
name = "Headrace"
base_url = "${url}/v1"
env_key = "HEADRACE_API_KEY"
wire_api = "responses"
`,
};

test.each(Object.entries(ways))("Codex %s", async (_, way) => {
  const { server, upstream } = world;
  const list = await server.request("/v1/models?client_version=0.169.0");
  const file = join(home.home, "models.json");
  writeFileSync(file, await list.text());
  mkdirSync(join(home.home, ".codex"));
  const configuration = `model = "${agentModel}"\nmodel_provider = "headrace"\n${way(server.url, file)}`;
  writeFileSync(join(home.home, ".codex", "config.toml"), configuration);
  const options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"];
  const command = ["node", programPath(".bin", "codex"), "exec", ...options, thePrompt];
  const { code, stdout } = await home.run(command, world.directory, { HEADRACE_API_KEY: server.key });
  expect([code, stdout]).toEqual([0, expect.stringContaining(theEnd)]);
  expect(stdout).not.toMatch(unknown);
  const { models } = (await (await server.request("/v1/models?client_version=0.169.0")).json()) as {
    models: { base_instructions: string }[];
  };
  expect(JSON.stringify(upstream.served[0]?.body["messages"])).toContain(
    JSON.stringify(models[0]?.base_instructions).slice(1, -1),
  );
  await expectBooked(world);
});
