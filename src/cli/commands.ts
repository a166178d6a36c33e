// Every command by its name; each is loaded only where it may be meant, so that a server holds nothing of the others.
import type { Command } from "commander";
import type { CliContext } from "./context.ts";

type Register = (program: Command, context: CliContext) => void;

/** In the order of the help. */
export const commands: ReadonlyMap<string, () => Promise<Register>> = new Map([
  ["serve", async () => (await import("./serve.ts")).registerServe],
  ["pull", async () => (await import("./pull.ts")).registerPull],
  ["engine", async () => (await import("./engine.ts")).registerEngine],
  ["models", async () => (await import("./models.ts")).registerModels],
  ["chat", async () => (await import("./chat.ts")).registerChat],
  ["keys", async () => (await import("./keys.ts")).registerKeys],
  ["apps", async () => (await import("./apps.ts")).registerApps],
  ["members", async () => (await import("./members.ts")).registerMembers],
  ["login", async () => (await import("./login.ts")).registerLogin],
  ["logout", async () => (await import("./logout.ts")).registerLogout],
  ["whoami", async () => (await import("./whoami.ts")).registerWhoami],
  ["setup-link", async () => (await import("./setup-link.ts")).registerSetupLink],
  ["operator-key", async () => (await import("./operator-key.ts")).registerOperatorKey],
  ["secret", async () => (await import("./secret.ts")).registerSecret],
  ["spool", async () => (await import("./spool.ts")).registerSpool],
  ["backup", async () => (await import("./backup.ts")).registerBackup],
  ["restore", async () => (await import("./restore.ts")).registerRestore],
  ["migrate", async () => (await import("./migrate.ts")).registerMigrate],
  ["node", async () => (await import("./node.ts")).registerNode],
  ["nodes", async () => (await import("./nodes.ts")).registerNodes],
  ["usage", async () => (await import("./usage.ts")).registerUsage],
  ["tiers", async () => (await import("./tiers.ts")).registerTiers],
  ["status", async () => (await import("./status.ts")).registerStatus],
  ["doctor", async () => (await import("./doctor.ts")).registerDoctor],
  ["completion", async () => (await import("./completion.ts")).registerCompletion],
]);

/** The names of the commands that `args`, all that follows `headrace`, may mean or tell of: one, or all of them. */
export function commandsMeant(args: readonly string[]): string[] {
  const [word = "serve"] = args;
  // What tells of commands needs all of them.
  if (word !== "completion" && commands.has(word)) return [word];
  // `serve` is meant where no command is named; after `--` one may be.
  const plainOptions = word.startsWith("-") && !args.some((arg) => ["--", "-h", "--help"].includes(arg));
  return plainOptions ? ["serve"] : [...commands.keys()];
}
