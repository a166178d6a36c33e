// Codex as it is published, over the WebSocket of Responses, which it takes where it is told of another base URL of OpenAI's.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { programPath } from "../../support/agents/agent-program.ts";
import { agentModel, theEnd, thePrompt } from "../../support/agents/agent-world.ts";
import { describeProgram } from "../../support/agents/program-contract.ts";

describeProgram({
  task: {
    steps: [
      { tool: "exec_command", arguments: { cmd: "cat notes.txt" } },
      { tool: "exec_command", arguments: { cmd: "sed -i s/red/blue/ notes.txt" } },
      { tool: "exec_command", arguments: { cmd: "cat notes.txt" } },
    ],
    end: theEnd,
  },
  prepare({ home }, { server }) {
    mkdirSync(join(home, ".codex"));
    const configuration = `model = "${agentModel}"
openai_base_url = "${server.url}/v1"
model_auto_compact_token_limit = 15000
check_for_update_on_startup = false
[analytics]
enabled = false
`;
    writeFileSync(join(home, ".codex", "config.toml"), configuration);
    const options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    const command = ["node", programPath(".bin", "codex"), "exec", ...options, thePrompt];
    return { command, env: { CODEX_API_KEY: server.key } };
  },
  faults: {
    "429": { steps: ["0", "429", "1", "2", "3"] },
    "503": { steps: ["0", "503", "1", "2", "3"] },
    cut: { steps: ["0", "cut", "1", "2", "3"] },
    overflow: { says: "ran out of room in the model's context window" },
  },
  overEngine: false,
  compacted: { by: 10_000, steps: ["0", "1", "2", "summary", "3"] },
});
