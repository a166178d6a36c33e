// Every command by its name; each is loaded only where it may be meant, so that a server holds nothing of the others.
import type { Command } from "commander";
import type { CliContext } from "./terminal/context.ts";

type Register = (program: Command, context: CliContext) => void;

/** In the order of the help. */
export const commands: ReadonlyMap<string, () => Promise<Register>> = new Map([
  ["serve", async () => (await import("./serve/serve.ts")).registerServe],
  ["pull", async () => (await import("./models/pull.ts")).registerPull],
  ["list", async () => (await import("./models/pulled.ts")).registerList],
  ["rm", async () => (await import("./models/pulled.ts")).registerRm],
  ["engine", async () => (await import("./serve/engine.ts")).registerEngine],
  ["models", async () => (await import("./models/models.ts")).registerModels],
  ["chat", async () => (await import("./chat/chat.ts")).registerChat],
  ["keys", async () => (await import("./keys/keys.ts")).registerKeys],
  ["apps", async () => (await import("./apps/apps.ts")).registerApps],
  ["members", async () => (await import("./login/members.ts")).registerMembers],
  ["login", async () => (await import("./login/login.ts")).registerLogin],
  ["logout", async () => (await import("./login/logout.ts")).registerLogout],
  ["whoami", async () => (await import("./login/whoami.ts")).registerWhoami],
  ["setup-link", async () => (await import("./login/setup-link.ts")).registerSetupLink],
  ["operator-key", async () => (await import("./upkeep/operator-key.ts")).registerOperatorKey],
  ["secret", async () => (await import("./upkeep/secret.ts")).registerSecret],
  ["spool", async () => (await import("./upkeep/spool.ts")).registerSpool],
  ["backup", async () => (await import("./upkeep/backup.ts")).registerBackup],
  ["restore", async () => (await import("./upkeep/restore.ts")).registerRestore],
  ["migrate", async () => (await import("./upkeep/migrate.ts")).registerMigrate],
  ["node", async () => (await import("./serve/node.ts")).registerNode],
  ["nodes", async () => (await import("./serve/nodes.ts")).registerNodes],
  ["usage", async () => (await import("./usage/usage.ts")).registerUsage],
  ["requests", async () => (await import("./usage/requests.ts")).registerRequests],
  ["tiers", async () => (await import("./usage/tiers.ts")).registerTiers],
  ["status", async () => (await import("./status/status.ts")).registerStatus],
  ["doctor", async () => (await import("./status/doctor.ts")).registerDoctor],
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
