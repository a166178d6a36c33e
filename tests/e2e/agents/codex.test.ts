// Codex as it is published, over Responses: it edits a file by its shell, and goes on after each way in which a model can fail.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { programPath } from "../../support/agents/agent-program.ts";
import { theEnd, thePrompt } from "../../support/agents/agent-world.ts";
import { connect, describeProgram } from "../../support/agents/program-contract.ts";

const codex = programPath(".bin", "codex");

describeProgram({
  task: {
    steps: [
      { tool: "exec_command", arguments: { cmd: "cat notes.txt" } },
      { tool: "exec_command", arguments: { cmd: "sed -i s/red/blue/ notes.txt" } },
      { tool: "exec_command", arguments: { cmd: "cat notes.txt" } },
    ],
    end: theEnd,
  },
  async prepare(own, world) {
    mkdirSync(join(own.home, ".codex"));
    const before = `${world.compacts ? "model_auto_compact_token_limit = 15000" : ""}
check_for_update_on_startup = false

[analytics]
enabled = false
`;
    writeFileSync(join(own.home, ".codex", "config.toml"), before);
    await connect("codex", own, world);
    const options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    const env = { HEADRACE_API_KEY: world.server.key };
    return { command: ["node", codex, "exec", ...options, thePrompt], env };
  },
  faults: {
    "429": { steps: ["0", "429", "1", "2", "3"] },
    "503": { steps: ["0", "503", "1", "2", "3"] },
    cut: { steps: ["0", "cut", "1", "2", "3"] },
    // It makes short what is about to be too long; what is, it leaves to its user.
    overflow: { says: "ran out of room in the model's context window" },
  },
  compacted: { by: 10_000, steps: ["0", "1", "2", "summary", "3"] },
});
