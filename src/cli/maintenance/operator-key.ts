// `headrace operator-key`: creates a key that may operate the installation. Anybody with access to the data directory
// may run the command.
import { InvalidArgumentError } from "commander";
import { loadDatabaseUrl, loadSecretsHex } from "../../config/config.ts";
import { environments } from "../../domain/api-key.ts";
import { scopes } from "../../domain/scope.ts";
import { makeOperatorKey, type OperatorKey } from "../../maintenance/operator-key.ts";
import { type CreateKeyRequest, createKeyRequest } from "../../wire/keys.ts";
import { command, dataDirOption } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { creationFields, type KeySettings, parseExpiry } from "../keys/key-settings.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { CliError, exitCodes, printable, type Terminal } from "../terminal/terminal.ts";

const maxNameLength = 100;

export const operatorKeyCommand = command({
  name: "operator-key",
  summary: "make an API key for an operator",
  description: "Make an API key with every scope, including admin:manage, in the database of the data directory.",
  options: {
    name: ["--name <name>", "a label", parseName, "Operator"],
    environment: ["--environment <name>", "live, test or dev (default: as the key in credentials.json)", environments],
    expires: [
      "--expires <when>",
      "when it expires: a span such as 12h or 30d, the end of a date, a time, or never (default: never)",
      parseExpiry,
    ],
    ...dataDirOption,
    quiet: ["-q, --quiet", "print the key and nothing else"],
    json: ["--json", "print the key's record, the key included"],
  },
  examples: [
    "headrace operator-key",
    "headrace operator-key --name deploy --expires 30d",
    `export HEADRACE_API_KEY="$(headrace operator-key --quiet)"`,
  ],
  help: [
    `The key is printed once, alone on standard output. Everything else goes to
standard error. A server that runs accepts it at once. Where the server is given
HEADRACE_SECRET, this command needs the same.`,
  ],
  async run({ context, options, terminal, nowSeconds }) {
    const made = await makeOperatorKey({
      dataDir: await context.dataDir(options.dataDir),
      databaseUrl: await loadDatabaseUrl(context.env),
      secretsHex: await loadSecretsHex(context.env),
      environment: options.environment,
      request: requestOf(options),
      nowSeconds: nowSeconds(),
    });
    const show = () => printKey(terminal, made, { quiet: options.quiet, nowSeconds: nowSeconds() });
    return { json: { ...made.record, key: made.key }, show };
  },
});

function requestOf({ name, expires }: { name: string } & Pick<KeySettings, "expires">): CreateKeyRequest {
  const expiry = creationFields(expires === undefined ? {} : { expires });
  const request = createKeyRequest.safeParse({ name, scopes: [...scopes], ...expiry });
  if (request.success) return request.data;
  throw new CliError("--expires: must be at most 100 years from now, or never.", exitCodes.usage);
}

/** Only the secret goes to standard output, so that a script can capture it. The rest goes to standard error. */
function printKey(
  terminal: Terminal,
  { record, key, account }: OperatorKey,
  { quiet, nowSeconds }: { quiet: boolean | undefined; nowSeconds: number },
): void {
  const { bold, dim } = terminal.err;
  const expiry = record.expires_at
    ? `expires ${formatTimeAndRelative(record.expires_at, nowSeconds)}`
    : "never expires";
  if (!quiet) {
    const what = `Operator key "${printable(record.name)}" is made (${record.id})`;
    terminal.note(`${what}: ${record.environment}, account "${printable(account.name)}", ${expiry}.`);
  }
  terminal.print(terminal.out.bold(key));
  if (quiet) return;
  terminal.note(bold("This is the only time it is shown: store it now. It may do everything on this installation."));
  terminal.note(dim(`To end it, with this key or another of an operator: headrace keys revoke ${record.id}`));
}

function parseName(text: string): string {
  refuseSecret(text);
  if (text.trim() !== "" && text.length <= maxNameLength) return text;
  throw new InvalidArgumentError(`It must have 1 to ${maxNameLength} characters.`);
}
