// Lists the commands by name. Each is loaded only when needed, so that a server keeps no other command in memory.
import type { CommandEntry } from "./command.ts";

/** The commands in the order of the help, each with the function that loads its entry. */
export const commands: ReadonlyMap<string, () => Promise<CommandEntry>> = new Map([
  ["serve", async () => (await import("./serve/serve.ts")).serveCommand],
  ["status", async () => (await import("./status/status.ts")).statusCommand],
  ["doctor", async () => (await import("./status/doctor.ts")).doctorCommand],
  ["pull", async () => (await import("./models/pull.ts")).pullCommand],
  ["list", async () => (await import("./models/pulled.ts")).listCommand],
  ["rm", async () => (await import("./models/pulled.ts")).rmCommand],
  ["engine", async () => (await import("./serve/engine.ts")).engineCommand],
  ["models", async () => (await import("./models/models.ts")).modelsCommand],
  ["prices", async () => (await import("./models/prices.ts")).pricesCommand],
  ["cache", async () => (await import("./cache/cache.ts")).cacheCommand],
  ["chat", async () => (await import("./chat/chat.ts")).chatCommand],
  ["connect", async () => (await import("./connect/connect.ts")).connectCommand],
  ["tools", async () => (await import("./tools/tools.ts")).toolsCommand],
  ["batches", async () => (await import("./batches/batches.ts")).batchesCommand],
  ["keys", async () => (await import("./keys/keys.ts")).keysCommand],
  ["apps", async () => (await import("./apps/apps.ts")).appsCommand],
  ["members", async () => (await import("./login/members.ts")).membersCommand],
  ["webhooks", async () => (await import("./webhooks/webhooks.ts")).webhooksCommand],
  ["login", async () => (await import("./login/login.ts")).loginCommand],
  ["logout", async () => (await import("./login/logout.ts")).logoutCommand],
  ["whoami", async () => (await import("./login/whoami.ts")).whoamiCommand],
  ["usage", async () => (await import("./usage/usage.ts")).accountUsageCommand],
  ["top", async () => (await import("./usage/top.ts")).topCommand],
  ["statement", async () => (await import("./usage/statement.ts")).statementCommand],
  ["limits", async () => (await import("./usage/limits.ts")).limitsCommand],
  ["end-users", async () => (await import("./usage/end-users.ts")).endUsersCommand],
  ["requests", async () => (await import("./usage/requests.ts")).requestsCommand],
  ["accounts", async () => (await import("./admin/accounts.ts")).accountsCommand],
  ["organizations", async () => (await import("./admin/organizations.ts")).organizationsCommand],
  ["people", async () => (await import("./admin/people.ts")).peopleCommand],
  ["tiers", async () => (await import("./admin/tiers.ts")).tiersCommand],
  ["upstreams", async () => (await import("./admin/upstreams.ts")).upstreamsCommand],
  ["replicas", async () => (await import("./admin/replicas.ts")).replicasCommand],
  ["config", async () => (await import("./admin/config.ts")).configCommand],
  ["audit", async () => (await import("./admin/audit.ts")).auditCommand],
  ["node", async () => (await import("./serve/node.ts")).nodeCommand],
  ["nodes", async () => (await import("./serve/nodes.ts")).nodesCommand],
  ["apply", async () => (await import("./declared/apply.ts")).applyCommand],
  ["diff", async () => (await import("./declared/apply.ts")).diffCommand],
  ["export", async () => (await import("./declared/export.ts")).exportCommand],
  ["setup-link", async () => (await import("./login/setup-link.ts")).setupLinkCommand],
  ["operator-key", async () => (await import("./maintenance/operator-key.ts")).operatorKeyCommand],
  ["secret", async () => (await import("./maintenance/secret.ts")).secretCommand],
  ["spool", async () => (await import("./maintenance/spool.ts")).spoolCommand],
  ["backup", async () => (await import("./maintenance/backup.ts")).backupCommand],
  ["restore", async () => (await import("./maintenance/restore.ts")).restoreCommand],
  ["migrate", async () => (await import("./maintenance/migrate.ts")).migrateCommand],
  ["completion", async () => (await import("./completion.ts")).completionCommand],
]);

export const otherHeading = "Other:";
/** Headings of the help text. The map's key is the first command below the heading. */
export const headings: ReadonlyMap<string, string> = new Map([
  ["serve", "Server:"],
  ["pull", "Models:"],
  ["chat", "Using models:"],
  ["keys", "Keys and people:"],
  ["usage", "Usage and limits:"],
  ["accounts", "Operating:"],
  ["node", "Nodes:"],
  ["apply", "State in files:"],
  ["setup-link", "Maintenance:"],
  ["completion", otherHeading],
]);

/**
 * Returns the commands to load: the command that `args` names, or all if the name is not clear. `args` is everything
 * after `headrace`.
 */
export function commandsMeant(args: readonly string[]): string[] {
  const [word = "serve"] = args;
  // Help and completion need all commands.
  if (word !== "completion" && commands.has(word)) return [word];
  // If options come first without a command, they are options of `serve`. After `--`, a command's name may follow.
  const plainOptions = word.startsWith("-") && !args.some((arg) => ["--", "-h", "--help"].includes(arg));
  return plainOptions ? ["serve"] : [...commands.keys()];
}
