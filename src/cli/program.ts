// The command line: parses arguments and runs one command.
import { Command } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { nearest } from "../base/text/nearest.ts";
import { processEnvironment } from "../config/config.ts";
import { register } from "./command.ts";
import { commands, commandsMeant, headings, otherHeading } from "./commands.ts";
import { createContext } from "./terminal/context.ts";
import { CliError, exitCodes, printable, reportError } from "./terminal/terminal.ts";

const examples = `\
Examples:
  headrace serve                       start a server on http://127.0.0.1:7545
  headrace chat "Who are you?"         ask the first model that can chat
  headrace keys create ci              make an API key
  headrace doctor                      show what is wrong and how to fix it

Incidents: docs/questions.md answers twenty questions with one command each.
`;

/** Parses the arguments and runs the command. Never rejects: a failure sets the exit code of the process. */
export async function runCommand(args: readonly string[]): Promise<void> {
  const context = createContext(processEnvironment());
  const program = new Command("headrace")
    .description("A model inference gateway and local node behind one OpenAI-compatible API.")
    .version(packageJson.version)
    // The help is printed before any command begins, and `| head` may close its output early.
    .configureOutput({
      writeOut(text) {
        context.begin();
        process.stdout.write(text);
      },
    })
    .addHelpText("after", `\n${examples}`)
    .commandsGroup(otherHeading)
    .helpCommand("help [command]", "show help for a command")
    .showSuggestionAfterError()
    .exitOverride();

  try {
    refuseUnknownCommand(args[0]);
    for (const name of commandsMeant(args)) {
      const entry = await commands.get(name)?.();
      const heading = headings.get(name);
      if (heading) program.commandsGroup(heading);
      if (entry) register(program, context, entry);
    }
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    process.exitCode = reportError(error, context.terminal);
  }
}

/** Commands of Ollama, each with the headrace command that replaces it. */
const elsewhere: ReadonlyMap<string, string> = new Map([
  ["run", "chat --model"],
  ["ps", "models ps"],
  ["show", "models show"],
  ["stop", "models stop"],
]);

/** Rejects an unknown command. Otherwise the default command `serve` would take the word for an argument. */
export function refuseUnknownCommand(word: string | undefined): void {
  const known = [...commands.keys(), "help"];
  if (word === undefined || word.startsWith("-") || known.includes(word)) return;
  const meant = elsewhere.get(word) ?? nearest(word, known);
  const hint = meant ? `Did you mean \`headrace ${meant}\`?` : "`headrace --help` lists the commands.";
  throw new CliError(`There is no command \`${printable(word)}\`. ${hint}`, exitCodes.usage);
}
