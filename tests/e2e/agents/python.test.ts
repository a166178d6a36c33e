// OpenAI's SDK for Python and LangChain as agents over Responses: they edit a file, and go on after each way in which a model can fail.
import { describe, expect } from "bun:test";
import { join } from "node:path";
import { describeAgent } from "../../support/agents/agent-contract.ts";
import { fileTask } from "../../support/agents/agent-loop.ts";
import { makeProgramHome, python } from "../../support/agents/agent-program.ts";
import { agentModel, thePrompt } from "../../support/agents/agent-world.ts";

const script = join(import.meta.dir, "..", "..", "programs", "agent.py");

describe.each(["openai", "langchain"])("%s", (kind) => {
  describeAgent({
    task: fileTask,
    async run({ server, directory }) {
      await using home = makeProgramHome();
      const command = [python, script, kind, `${server.url}/v1`, agentModel, thePrompt];
      const { code, stdout, stderr } = await home.run(command, directory, { OPENAI_API_KEY: server.key });
      const routes = new Set(server.logged("request").map(({ route }) => String(route)));
      expect([...routes].filter((route) => !route.startsWith("/v1/responses"))).toEqual([]);
      if (code !== 0) throw new Error(`${kind} ended with ${code}:\n${stdout}\n${stderr}`);
      return stdout;
    },
    isSlow: true,
  });
});
