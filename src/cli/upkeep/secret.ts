// `headrace secret`: replaces the installation's secret, and says what hangs on the one before.
import type { Command } from "commander";
import { loadDatabaseUrl, loadSecretsHex } from "../../config/config.ts";
import {
  forgetOldSecrets,
  rotateSecretFile,
  type SecretPlace,
  type SecretStatus,
  secretStatus,
} from "../../upkeep/replace-secret.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatCount, formatTimeAndRelative } from "../terminal/figures.ts";
import { printable } from "../terminal/terminal.ts";

interface SecretFlags {
  dataDir?: string;
  json?: boolean;
  force?: boolean;
}

const help = `
The steps, for a server with the file \`secret\` in its data directory:
  headrace secret rotate        a new secret, in front of the one before
  (restart the server)          both are accepted; what is new is made under the new one
  headrace secret status        how much there is left under the old one
  headrace secret forget-old    once that is nothing
  (restart the server)

With HEADRACE_SECRET, the same is done with the variable: "old,new", then "new,old",
then "new", each at all servers before the next.`;

export function registerSecret(program: Command, context: CliContext): void {
  const secret = program
    .command("secret")
    .summary("replace the secret behind keys and sealed values")
    .description("Replace the secret from which key digests and seals are derived, without ending a key.")
    .addHelpText("after", help);
  const dataDir = ["--data-dir <path>", "data directory (default: as headrace serve)"] as const;
  secret
    .command("rotate")
    .description("Put a new secret in front of the one in the data directory. A server takes it over when it starts.")
    .option(...dataDir)
    .action((flags: SecretFlags) => rotate(context, flags));
  secret
    .command("status")
    .description("Say how many keys and sealed values are under an older secret.")
    .option(...dataDir)
    .option("--json", "print one JSON object")
    .action((flags: SecretFlags) => status(context, flags));
  secret
    .command("forget-old")
    .description("Leave only the secret in use in the data directory, once nothing is under the older ones.")
    .option(...dataDir)
    .option("--force", "even where keys are still under an older one: they are refused from then on")
    .action((flags: SecretFlags) => forgetOld(context, flags));
}

async function placeOf(context: CliContext, flags: SecretFlags): Promise<SecretPlace> {
  return {
    dataDir: await context.dataDir(flags.dataDir),
    databaseUrl: loadDatabaseUrl(context.env),
    secretsHex: loadSecretsHex(context.env),
    nowSeconds: Math.floor(context.nowMs() / 1000),
  };
}

async function rotate(context: CliContext, flags: SecretFlags): Promise<void> {
  context.begin();
  const file = await rotateSecretFile(await placeOf(context, flags));
  context.terminal.print(`${file} has a new secret, in front of the one before.`);
  context.terminal.note("Restart the server to use it. Keep a copy of the file: without it every key is refused.");
}

async function status(context: CliContext, flags: SecretFlags): Promise<void> {
  context.begin();
  const { terminal } = context;
  const found = await secretStatus(await placeOf(context, flags));
  if (flags.json) {
    terminal.print(JSON.stringify(asJson(found), undefined, 2));
    return;
  }
  const { figures, file, isWaiting, keys } = found;
  const count = (n: number) => formatCount(n);
  terminal.print(`Secrets accepted        ${figures.accepted}, from ${file ?? "HEADRACE_SECRET"}`);
  if (isWaiting) terminal.print("                        the newest is used once the server was restarted");
  terminal.print(`Keys under older        ${count(figures.keysUnderOlder)}`);
  terminal.print(`App secrets under older ${count(figures.appSecretsUnderOlder)}`);
  terminal.print(`Sealed under older      ${count(figures.sealedUnderOlder)}`);
  terminal.print(`Join tokens under older ${count(figures.joinTokens)}`);
  const refused = figures.keysUnderDropped + figures.appSecretsUnderDropped + figures.sealedUnderDropped;
  if (refused > 0) terminal.print(`Lost with a dropped one ${count(refused)}`);
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  for (const { id, name, last_used_at: used } of keys) {
    const when = used === null ? "never used" : `last used ${formatTimeAndRelative(Number(used), nowSeconds)}`;
    terminal.print(`  ${id}  ${printable(name)}, ${when}`);
  }
  if (keys.length > 0) {
    terminal.note(
      "A key comes under the secret in use when it is used next. One that nobody uses can be replaced, or given up.",
    );
  }
}

async function forgetOld(context: CliContext, flags: SecretFlags): Promise<void> {
  context.begin();
  const { terminal } = context;
  const { file, forgotten, figures } = await forgetOldSecrets(await placeOf(context, flags), {
    forced: flags.force ?? false,
  });
  const lost = figures.keysUnderOlder + figures.appSecretsUnderOlder;
  if (lost > 0) terminal.note(`${formatCount(lost)} keys and secrets of apps are refused from the next start on.`);
  if (file === undefined)
    terminal.print("What nobody can open was given up. Leave only the first secret in HEADRACE_SECRET.");
  else if (forgotten === 0) terminal.print(`${file} holds one secret: there was nothing to forget.`);
  else terminal.print(`${file} holds the secret in use alone. Restart the server.`);
}

function asJson({ file, isWaiting, figures, keys }: SecretStatus): Record<string, unknown> {
  return {
    file: file ?? null,
    accepted: figures.accepted,
    waits_for_restart: isWaiting,
    keys_under_old: figures.keysUnderOlder,
    keys_under_dropped: figures.keysUnderDropped,
    app_secrets_under_old: figures.appSecretsUnderOlder,
    app_secrets_under_dropped: figures.appSecretsUnderDropped,
    sealed_under_old: figures.sealedUnderOlder,
    sealed_under_dropped: figures.sealedUnderDropped,
    join_tokens_under_old: figures.joinTokens,
    keys: keys.map(({ last_used_at: used, ...key }) => ({ ...key, last_used_at: used === null ? null : Number(used) })),
  };
}
