// opencode as it is published, over Responses and over Messages by the AI SDK's packages for OpenAI and Anthropic, which it brings.
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeProgramHome, opencodeProgram } from "../../support/agents/agent-program.ts";
import {
  agentModel,
  blue,
  expectBooked,
  red,
  startAgentWorld,
  taskOf,
  theEnd,
  thePrompt,
  type UpstreamKind,
  upstreamKinds,
} from "../../support/agents/agent-world.ts";
import { long } from "../../support/long.ts";

/** It takes seconds to start: only the long form has it work over every kind of model. */
const kinds = (Object.keys(upstreamKinds) as UpstreamKind[]).slice(0, long ? undefined : 1);

describe.each(kinds)("opencode with a model that speaks %s", (kind) => {
  test.each([
    ["@ai-sdk/openai", "/v1/responses"],
    ["@ai-sdk/anthropic", "/v1/messages"],
  ])(
    "lets opencode edit a file by %s, with the model's token counts in the ledger",
    async (npm, path) => {
      await using world = await startAgentWorld(kind);
      await using home = makeProgramHome();
      const { server, upstream } = world;
      world.reset();
      upstream.work({
        steps: [
          { tool: "read", arguments: { filePath: "notes.txt" } },
          { tool: "edit", arguments: { filePath: "notes.txt", oldString: red, newString: blue } },
        ],
        end: theEnd,
      });
      const options = { baseURL: `${server.url}/v1`, apiKey: server.key };
      const models = { [agentModel]: { name: "Agent", limit: { context: 16_000, output: 1_000 } } };
      const configuration = {
        ...{ autoupdate: false, share: "disabled", model: `headrace/${agentModel}` },
        provider: { headrace: { npm, name: "Headrace", options, models } },
      };
      const folder = join(home.home, ".config", "opencode");
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "opencode.json"), JSON.stringify(configuration));
      const { code, stdout } = await home.run([opencodeProgram(), "run", thePrompt], world.directory);
      expect([code, stdout]).toEqual([0, expect.stringContaining(theEnd)]);
      expect(world.text()).toBe(blue);
      expect(taskOf(world)).toEqual(["0", "1", "2"]);
      expect(new Set(server.logged("request").map(({ route }) => route))).toEqual(new Set([path]));
      await expectBooked(world);
    },
    60_000,
  );
});
