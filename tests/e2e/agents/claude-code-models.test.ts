// Claude Code finds the models of the gateway that have names it takes, and its own names for models work through aliases.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { claudeProgram, makeProgramHome, type ProgramHome } from "../../support/agents/agent-program.ts";
import {
  expectBooked,
  type ScriptedWorld,
  startAgentWorld,
  theEnd,
  thePrompt,
} from "../../support/agents/agent-world.ts";

let world: ScriptedWorld;
let home: ProgramHome;
beforeEach(async () => {
  world = await startAgentWorld("each API natively");
  home = makeProgramHome();
  world.reset();
  world.upstream.work({ steps: [{ tool: "Read", arguments: { file_path: "notes.txt" } }], end: theEnd });
});
afterEach(async () => {
  await home[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

async function work(model: string): Promise<void> {
  const options = ["--permission-mode", "acceptEdits", "--model", model];
  const { code, stdout } = await home.run([claudeProgram(), "-p", thePrompt, ...options], world.directory, {
    ANTHROPIC_BASE_URL: world.server.url,
    ANTHROPIC_AUTH_TOKEN: world.server.key,
    CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
  });
  expect([code, stdout]).toEqual([0, expect.stringContaining(theEnd)]);
  await expectBooked(world);
}

test("keeps the model aliases that Claude Code discovered, and works with one of them", async () => {
  await work("claude-agent");
  const found = JSON.parse(readFileSync(join(home.home, ".claude", "cache", "gateway-models.json"), "utf8"));
  expect(found.models).toEqual([{ id: "claude-agent", display_name: "claude-agent" }]);
});

test("serves Claude Code's small model under an alias and passes its betas to a Messages server", async () => {
  await work("haiku");
  for (const { api, body, headers } of world.upstream.served) {
    expect([api, body["model"]]).toEqual(["messages", "scripted"]);
    expect(headers["anthropic-beta"]).toContain("claude-code-");
  }
  const models = world.server.logged("request").flatMap(({ model }) => (model === undefined ? [] : [model]));
  expect(models.length).toBeGreaterThan(0);
  for (const model of models) expect(model).toStartWith("claude-haiku-");
});
