// `headrace secret`: replaces the installation's secret, and lists what depends on the old one.
import { loadDatabaseUrl, loadSecretsHex } from "../../config/config.ts";
import {
  forgetOldSecrets,
  rotateSecretFile,
  type SecretLocation,
  type SecretStatus,
  secretStatus,
} from "../../maintenance/replace-secret.ts";
import { command, dataDirOption } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatCount, formatTimeAndRelative } from "../terminal/figures.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";

const help = `\
The steps, for a server with the file \`secret\` in its data directory:
  headrace secret rotate        adds a new secret to the file
  (restart the server)          it accepts both, and uses the new one
  headrace secret status        shows what is still under the old one; repeat until nothing is
  headrace secret forget-old    removes the old one; refused while a key needs it
  (restart the server)

If HEADRACE_SECRET is set, there is no file. Set the variable at all servers to
"old,new" and restart them, then "new,old", then "new", once
headrace secret status shows nothing.`;

const rotateCommand = command({
  name: "rotate",
  description: "Put a new secret in front of the one in the data directory. A server takes it over when it starts.",
  options: dataDirOption,
  async run({ context, options, terminal }) {
    const file = await rotateSecretFile(await locationOf(context, options));
    terminal.print(`${file} has a new secret, in front of the one before.`);
    terminal.note("Restart the server to use it. Keep a copy of the file: without it every key is refused.");
  },
});

const statusCommand = command({
  name: "status",
  description: "Say how many keys and sealed values are under an older secret.",
  options: { ...dataDirOption, json: ["--json", "print one JSON object"] },
  async run({ context, options, terminal, nowSeconds }) {
    const found = await secretStatus(await locationOf(context, options));
    return { json: asJson(found), show: () => printStatus(terminal, found, nowSeconds()) };
  },
});

const forgetOldCommand = command({
  name: "forget-old",
  description: "Leave only the secret in use in the data directory, once nothing is under the older ones.",
  options: {
    ...dataDirOption,
    force: ["--force", "even if keys still use an older secret; those keys stop working"],
  },
  async run({ context, options, terminal }) {
    const location = await locationOf(context, options);
    const { file, forgotten, figures } = await forgetOldSecrets(location, { forced: options.force ?? false });
    const lost = figures.keysUnderOlder + figures.appSecretsUnderOlder;
    if (lost > 0) terminal.note(`${formatCount(lost)} keys and secrets of apps are refused from the next start on.`);
    if (file === undefined) {
      terminal.print("Values that no secret opens were given up. Leave only the first secret in HEADRACE_SECRET.");
    } else if (forgotten === 0) terminal.print(`${file} holds one secret: there was nothing to forget.`);
    else terminal.print(`${file} holds the secret in use alone. Restart the server.`);
  },
});

export const secretCommand = command({
  name: "secret",
  summary: "rotate the secret behind keys and encrypted values",
  description: "Replace the secret behind key digests and encrypted values. All keys stay valid.",
  help: [help],
  commands: [rotateCommand, statusCommand, forgetOldCommand],
});

async function locationOf(context: CliContext, { dataDir }: { dataDir?: string }): Promise<SecretLocation> {
  return {
    dataDir: await context.dataDir(dataDir),
    databaseUrl: await loadDatabaseUrl(context.env),
    secretsHex: await loadSecretsHex(context.env),
    nowSeconds: Math.floor(context.nowMs() / 1000),
  };
}

function printStatus(terminal: Terminal, { figures, file, isWaiting, keys }: SecretStatus, nowSeconds: number): void {
  const count = (n: number) => formatCount(n);
  terminal.print(`Secrets accepted        ${figures.accepted}, from ${file ?? "HEADRACE_SECRET"}`);
  if (isWaiting) terminal.print("                        the newest is used once the server was restarted");
  terminal.print(`Keys under older        ${count(figures.keysUnderOlder)}`);
  terminal.print(`App secrets under older ${count(figures.appSecretsUnderOlder)}`);
  terminal.print(`Sealed under older      ${count(figures.sealedUnderOlder)}`);
  terminal.print(`Join tokens under older ${count(figures.joinTokens)}`);
  const refused = figures.keysUnderDropped + figures.appSecretsUnderDropped + figures.sealedUnderDropped;
  if (refused > 0) terminal.print(`Lost with a dropped one ${count(refused)}`);
  for (const { id, name, last_used_at: used } of keys) {
    const when = used === null ? "never used" : `last used ${formatTimeAndRelative(Number(used), nowSeconds)}`;
    terminal.print(`  ${id}  ${printable(name)}, ${when}`);
  }
  if (keys.length > 0) {
    terminal.note("A key moves to the current secret at its next use. Replace a key that is not used, or give it up.");
  }
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
