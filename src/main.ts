// The program: arguments to one command.
import { Command } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { nearest } from "./base/text/nearest.ts";
import { register } from "./cli/command.ts";
import { commands, commandsMeant } from "./cli/commands.ts";
import { createContext } from "./cli/terminal/context.ts";
import { CliError, exitCodes, printable, reportError } from "./cli/terminal/terminal.ts";
import { processEnvironment } from "./config/config.ts";

const context = createContext(processEnvironment());
const program = new Command("headrace")
  .description("A model inference gateway and local node behind one OpenAI-compatible API.")
  .version(packageJson.version)
  // Help is written before any command begins, and `| head` ends while it is.
  .configureOutput({
    writeOut(text) {
      context.begin();
      process.stdout.write(text);
    },
  })
  .showSuggestionAfterError()
  .exitOverride();

try {
  const args = process.argv.slice(2);
  refuseUnknownCommand(args[0]);
  for (const name of commandsMeant(args)) {
    const entry = await commands.get(name)?.();
    if (entry) register(program, context, entry);
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
