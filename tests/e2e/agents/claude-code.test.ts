// Claude Code as it is published, over Messages: it edits a file by its own tools, and goes on after each way in which a model can fail.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claudeProgram } from "../../support/agents/agent-program.ts";
import { blue, red, theEnd, thePrompt } from "../../support/agents/agent-world.ts";
import { connect, describeProgram } from "../../support/agents/program-contract.ts";

describeProgram({
  task: {
    steps: [
      { tool: "Read", arguments: { file_path: "notes.txt" } },
      { tool: "Edit", arguments: { file_path: "notes.txt", old_string: red, new_string: blue } },
      { tool: "Read", arguments: { file_path: "notes.txt" } },
    ],
    end: theEnd,
  },
  async prepare(own, world) {
    mkdirSync(join(own.home, ".claude"));
    const env = {
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      ...(world.compacts ? { CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "20" } : {}),
    };
    writeFileSync(join(own.home, ".claude", "settings.json"), JSON.stringify({ env }));
    await connect("claude", own, world);
    return { command: [claudeProgram(), "-p", thePrompt, "--permission-mode", "acceptEdits"] };
  },
  faults: {
    "429": { steps: ["0", "429", "1", "2", "3"] },
    "503": { steps: ["0", "503", "1", "2", "3"] },
    cut: { steps: ["0", "cut", "1", "2", "3"] },
    overflow: { steps: ["0", "overflow", "summary", "1", "2", "3"] },
  },
  compacted: { by: 38_000, steps: ["0", "1", "2", "summary", "3"] },
});
