// opencode as it is published, over chat completions: it edits a file by its own tools, and goes on after each way in which a model can fail.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { opencodeProgram } from "../../support/agents/agent-program.ts";
import { blue, red, theEnd, thePrompt } from "../../support/agents/agent-world.ts";
import { connect, describeProgram } from "../../support/agents/program-contract.ts";

describeProgram({
  task: {
    steps: [
      { tool: "read", arguments: { filePath: "notes.txt" } },
      { tool: "edit", arguments: { filePath: "notes.txt", oldString: red, newString: blue } },
      { tool: "read", arguments: { filePath: "notes.txt" } },
    ],
    end: theEnd,
  },
  async prepare(own, world) {
    const file = join(own.home, ".config", "opencode", "opencode.json");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ autoupdate: false, share: "disabled" }));
    await connect("opencode", own, world);
    const written = readFileSync(file, "utf8");
    // Small enough for a compaction.
    writeFileSync(
      file,
      written.replace('"context": 200000', '"context": 16000').replace('"output": 32000', '"output": 1000'),
    );
    return { command: [opencodeProgram(), "run", thePrompt], env: { HEADRACE_API_KEY: world.server.key } };
  },
  faults: {
    "429": { steps: ["0", "429", "1", "2", "3"] },
    "503": { steps: ["0", "503", "1", "2", "3"] },
    cut: { steps: ["0", "cut", "1", "2", "3"] },
    // It tells of what it mended, too.
    overflow: { steps: ["0", "overflow", "summary", "0", "1", "2", "3"], code: 1 },
  },
  // What is to be summed up is told as a text, which the scripted model begins from anew.
  compacted: { by: 10_000, steps: ["0", "1", "2", "summary", "0", "1", "2", "3"] },
  // It asks for chat completions whatever the model speaks, and takes seconds to start.
  isSlow: true,
});
