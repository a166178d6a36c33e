// Agents as their makers publish them, told of the gateway's tools by `headrace connect --tools`: each finds them with its key.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { runCommand } from "../../fixtures/command-line.ts";
import {
  claudeProgram,
  makeProgramHome,
  opencodeProgram,
  type ProgramHome,
  programPath,
} from "../../support/agents/agent-program.ts";
import { startToolWorld, type ToolWorld } from "../../support/mcp/tool-world.ts";
import { HttpMcpServer, textResult } from "../../support/mcp-servers.ts";

// Each is a program that has to start.
setDefaultTimeout(60_000);

let tools: HttpMcpServer;
let world: ToolWorld;
let home: ProgramHome;
let key: string;

beforeAll(async () => {
  tools = new HttpMcpServer({ tools: { look: async () => textResult("seen") } });
  world = await startToolWorld([{ name: "files", url: tools.url }]);
  key = await world.key();
  home = makeProgramHome();
});

afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  await tools[Symbol.asyncDispose]();
});

async function connected(client: string): Promise<void> {
  const env = { HOME: home.home, HEADRACE_BASE_URL: world.server.baseUrl, HEADRACE_API_KEY: key };
  const args = ["connect", client, "--tools", "--write", "--yes"];
  const { code, stderr } = await runCommand(args, { env, configFolder: join(home.home, "headrace") });
  expect({ code, stderr }).toMatchObject({ code: 0 });
}

const listed = (command: readonly string[], env: Record<string, string> = {}) =>
  home.run([...command, "mcp", "list"], home.home, { HEADRACE_API_KEY: key, ...env });

test("connects Claude Code to MCP with its environment's key, and not without the key", async () => {
  await connected("claude");
  expect((await listed([claudeProgram()])).stdout).toMatch(/headrace: http:\S+\/mcp .*Connected/);
  expect((await listed([claudeProgram()], { HEADRACE_API_KEY: "none" })).stdout).not.toMatch(/headrace: .*✔ Connected/);
});

test("connects opencode to MCP with its environment's key", async () => {
  await connected("opencode");
  const { stdout, stderr } = await listed([opencodeProgram()]);
  expect(stdout + stderr).toMatch(/headrace.*connected/);
});

test("configures Codex with the MCP address and the key's variable", async () => {
  await connected("codex");
  const { stdout } = await listed(["node", programPath(".bin", "codex")]);
  expect(stdout).toMatch(/headrace +http:\S+\/mcp +HEADRACE_API_KEY +.*enabled/);
});
