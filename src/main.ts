// The program: arguments to one command.
import { Command } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { createContext } from "./cli/context.ts";
import { registerEngine } from "./cli/engine.ts";
import { registerModels } from "./cli/models.ts";
import { registerPull } from "./cli/pull.ts";
import { registerServe } from "./cli/serve.ts";
import { reportError } from "./cli/terminal.ts";
import { processEnvironment } from "./config.ts";

const context = createContext(processEnvironment());
const program = new Command("headrace")
  .description("A model inference gateway and local node behind one OpenAI-compatible API.")
  .version(packageJson.version)
  .showSuggestionAfterError()
  .exitOverride();
registerServe(program, context);
registerPull(program, context);
registerEngine(program, context);
registerModels(program, context);

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportError(error, context.terminal);
}
