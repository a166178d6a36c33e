// The program: arguments to one command.
import { Command } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { commands, commandsMeant } from "./cli/commands.ts";
import { createContext } from "./cli/context.ts";
import { CliError, exitCodes, printable, reportError } from "./cli/terminal.ts";
import { nearest } from "./config/problems.ts";
import { processEnvironment } from "./config.ts";

const context = createContext(processEnvironment());
const program = new Command("headrace")
  .description("A model inference gateway and local node behind one OpenAI-compatible API.")
  .version(packageJson.version)
  .showSuggestionAfterError()
  .exitOverride();

try {
  const args = process.argv.slice(2);
  refuseUnknownCommand(args[0]);
  for (const name of commandsMeant(args)) {
    const register = await commands.get(name)?.();
    register?.(program, context);
  }
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportError(error, context.terminal);
}

/** `serve` is the default command, and would take any other word for an argument of its own. */
function refuseUnknownCommand(word: string | undefined): void {
  const known = [...commands.keys(), "help"];
  if (word === undefined || word.startsWith("-") || known.includes(word)) return;
  const meant = nearest(word, known);
  const hint = meant ? `Did you mean \`headrace ${meant}\`?` : "`headrace --help` lists the commands.";
  throw new CliError(`There is no command \`${printable(word)}\`. ${hint}`, exitCodes.usage);
}
