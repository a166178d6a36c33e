// The program: arguments to one command.
import { Command } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { registerApps } from "./cli/apps.ts";
import { registerBackup } from "./cli/backup.ts";
import { registerChat } from "./cli/chat.ts";
import { registerCompletion } from "./cli/completion.ts";
import { createContext } from "./cli/context.ts";
import { registerDoctor } from "./cli/doctor.ts";
import { registerEngine } from "./cli/engine.ts";
import { registerKeys } from "./cli/keys.ts";
import { registerLogin } from "./cli/login.ts";
import { registerLogout } from "./cli/logout.ts";
import { registerMembers } from "./cli/members.ts";
import { registerMigrate } from "./cli/migrate.ts";
import { registerModels } from "./cli/models.ts";
import { registerNode } from "./cli/node.ts";
import { registerNodes } from "./cli/nodes.ts";
import { registerOperatorKey } from "./cli/operator-key.ts";
import { registerPull } from "./cli/pull.ts";
import { registerRestore } from "./cli/restore.ts";
import { registerSecret } from "./cli/secret.ts";
import { registerServe } from "./cli/serve.ts";
import { registerSetupLink } from "./cli/setup-link.ts";
import { registerSpool } from "./cli/spool.ts";
import { registerStatus } from "./cli/status.ts";
import { CliError, exitCodes, printable, reportError } from "./cli/terminal.ts";
import { registerTiers } from "./cli/tiers.ts";
import { registerUsage } from "./cli/usage.ts";
import { registerWhoami } from "./cli/whoami.ts";
import { nearest } from "./config/problems.ts";
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
registerChat(program, context);
registerKeys(program, context);
registerApps(program, context);
registerMembers(program, context);
registerLogin(program, context);
registerLogout(program, context);
registerWhoami(program, context);
registerSetupLink(program, context);
registerOperatorKey(program, context);
registerSecret(program, context);
registerSpool(program, context);
registerBackup(program, context);
registerRestore(program, context);
registerMigrate(program, context);
registerNode(program, context);
registerNodes(program, context);
registerUsage(program, context);
registerTiers(program, context);
registerStatus(program, context);
registerDoctor(program, context);
registerCompletion(program, context);

try {
  refuseUnknownCommand(process.argv[2]);
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportError(error, context.terminal);
}

/** `serve` is the default command, and would take any other word for an argument of its own. */
function refuseUnknownCommand(word: string | undefined): void {
  const known = [...program.commands.map((command) => command.name()), "help"];
  if (word === undefined || word.startsWith("-") || known.includes(word)) return;
  const meant = nearest(word, known);
  const hint = meant ? `Did you mean \`headrace ${meant}\`?` : "`headrace --help` lists the commands.";
  throw new CliError(`There is no command \`${printable(word)}\`. ${hint}`, exitCodes.usage);
}
