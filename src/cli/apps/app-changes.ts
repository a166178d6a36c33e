// `headrace apps create`, `update` and `rotate-secret`: what makes or changes an app.
import type { Command } from "commander";
import { z } from "zod";
import { appScopes, defaultAppScopes, defaultSecretOverlapSeconds } from "../../domain/people/app.ts";
import { scopeMeanings } from "../../domain/scope.ts";
import { parseOverlap } from "../keys/key-changes.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { parseNames } from "../keys/key-settings.ts";
import { requestJson, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { confirm } from "../terminal/input.ts";
import { CliError, exitCodes, interruptible, printable } from "../terminal/terminal.ts";
import { appArgument, appPath, appRecord, findApp, type ListedApp, printApp, shownApp } from "./app-records.ts";

interface AppSettings {
  redirectUri?: string[];
  homepage?: string;
  scopes?: string[];
  requirePkce?: boolean;
}

interface SecretOptions extends ConnectionOptions {
  json?: boolean;
  quiet?: boolean;
}

interface CreateOptions extends SecretOptions, AppSettings {
  public?: boolean;
}

interface UpdateOptions extends ConnectionOptions, AppSettings {
  name?: string;
  json?: boolean;
}

interface RotateOptions extends SecretOptions {
  /** Seconds. */
  overlap?: number;
  yes?: boolean;
}

const appWithSecret = appRecord.extend({ client_secret: z.string().optional() });
const rotatedApp = appRecord.extend({ client_secret: z.string() });

const scopesHelp = `Scopes an app can have:
${appScopes.map((scope) => `  ${scope.padEnd(11)}  ${scopeMeanings[scope]}`).join("\n")}`;

const secretHelp = `
The secret is printed once, alone on standard output; everything else goes to
standard error. It cannot be shown again.`;

export function registerAppChanges(apps: Command, context: CliContext): void {
  const create = apps
    .command("create")
    .summary("register an app")
    .description("Register an app: an OAuth client that people can allow to act for their account.");
  addConnectionOptions(
    addSettings(create.argument("<name>", "shown to people who are asked to allow it"), false)
      .option("--public", "runs on people's devices and cannot keep a secret")
      .option("--require-pkce", "refuse requests without PKCE; a public app's always are")
      .option("-q, --quiet", "print the secret and nothing else")
      .option("--json", "print what the API gives, the secret included"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace apps create Notes --redirect-uri https://notes.example/callback
  headrace apps create "Notes for phones" --public --redirect-uri com.example.notes:/callback
  headrace apps create Editor --public --redirect-uri http://127.0.0.1/callback
  headrace apps create Television --public

${scopesHelp}
${secretHelp} Of a public app, which has none, the client id is printed instead.
${connectionHelp}`,
    )
    .action((name: string, options: CreateOptions) => createApp(context, name, options));

  const update = apps.command("update").summary("change an app").description("Change an app. Its type stays as it is.");
  addConnectionOptions(
    addSettings(update.argument(...appArgument).option("--name <name>", "another name"), true)
      .option("--require-pkce", "refuse requests without PKCE")
      .option("--no-require-pkce", "take requests without PKCE; not of a public app")
      .option("--json", "print the app as the API gives it"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace apps update Notes --redirect-uri https://notes.example/callback --redirect-uri http://127.0.0.1/callback
  headrace apps update Notes --scopes chat:write,chat:read --homepage https://notes.example/
  headrace apps update Notes --name "Notes 2" --homepage none

${scopesHelp}
${connectionHelp}`,
    )
    .action((wanted: string, options: UpdateOptions) => updateApp(context, wanted, options));

  const rotate = apps
    .command("rotate-secret")
    .summary("replace an app's secret by a new one")
    .description("Make a new secret in place of one that stays valid for a while.");
  addConnectionOptions(
    rotate
      .argument(...appArgument)
      .option(
        "--overlap <span>",
        "how long the old secret stays valid, such as 12h; 0: not at all (default: 24h)",
        parseOverlap,
      )
      .option("-y, --yes", "do not ask; it only asks with --overlap 0")
      .option("-q, --quiet", "print the new secret and nothing else")
      .option("--json", "print what the API gives, the new secret included"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace apps rotate-secret Notes\n  headrace apps rotate-secret Notes --overlap 7d --quiet\n  headrace apps rotate-secret Notes --overlap 0 --yes\n${secretHelp}\n${connectionHelp}`,
    )
    .action((wanted: string, options: RotateOptions) => rotateSecret(context, wanted, options));
}

/** `clearable`: the app exists already, and what it has can be taken away again with `none`. */
function addSettings(command: Command, clearable: boolean): Command {
  const none = clearable ? ", or none" : "";
  const scopesDefault = clearable ? "" : ` (default: ${defaultAppScopes.join(",")})`;
  return command
    .option(
      "--redirect-uri <uri>",
      `where people are sent back to${clearable ? `${none}; all of them anew` : ""}; can be given several times`,
      (uri: string, before: string[] | undefined) => [...(before ?? []), uri],
    )
    .option("--homepage <url>", `an https page about the app${none}`)
    .option("--scopes <scopes>", `the most it may ask for, separated by commas${scopesDefault}`, parseNames);
}

async function createApp(context: CliContext, name: string, options: CreateOptions): Promise<void> {
  context.begin();
  refuseSecret(name);
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const body = { name, ...(options.public ? { type: "public" } : {}), ...settingFields(options) };
  const answer = await interruptible((signal) => requestJson(connection, "/apps", signal, { method: "POST", body }));
  const made = understood(appWithSecret, answer, connection, "new app");
  if (options.json) {
    terminal.print(JSON.stringify(answer, undefined, 2));
    return;
  }
  if (!options.quiet) terminal.note(`App ${shownApp(made)} is registered: ${summary(made)}.`);
  if (made.client_secret === undefined) terminal.print(terminal.out.bold(printable(made.id)));
  else printSecret(context, made.id, made.client_secret, options);
}

async function updateApp(context: CliContext, wanted: string, options: UpdateOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const { name } = options;
  if (name !== undefined) refuseSecret(name);
  const body = { ...(name === undefined ? {} : { name }), ...settingFields(options) };
  if (Object.keys(body).length === 0) {
    throw new CliError(
      "Nothing to change: give at least one option, such as --redirect-uri https://notes.example/callback. See --help.",
      exitCodes.usage,
    );
  }
  const connection = await findConnection(context, options);
  const answer = await interruptible(async (signal) => {
    const { app } = await findApp(connection, wanted, signal);
    return requestJson(connection, appPath(app.id), signal, { method: "PATCH", body });
  });
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else printApp(terminal, understood(appRecord, answer, connection, "app"), context.nowMs());
}

async function rotateSecret(context: CliContext, wanted: string, options: RotateOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const connection = await findConnection(context, options);
  const { app } = await interruptible((signal) => findApp(connection, wanted, signal));
  if (options.overlap === 0) {
    await confirm(input, {
      question: `Replace the secret of app ${shownApp(app)} and end the old one at once`,
      yes: options.yes,
    });
  }
  const body = options.overlap === undefined ? {} : { overlap_seconds: options.overlap };
  const answer = await interruptible((signal) =>
    requestJson(connection, `${appPath(app.id)}/rotate-secret`, signal, { method: "POST", body }),
  );
  const rotated = understood(rotatedApp, answer, connection, "app with a new secret");
  if (options.json) {
    terminal.print(JSON.stringify(answer, undefined, 2));
    return;
  }
  if (!options.quiet) terminal.note(`App ${shownApp(app)} has a new secret.`);
  printSecret(context, app.id, rotated.client_secret, options);
  if (options.quiet) return;
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const until = nowSeconds + (options.overlap ?? defaultSecretOverlapSeconds);
  terminal.note(
    options.overlap === 0
      ? "The old secret works no more."
      : `The old secret works until ${formatTimeAndRelative(until, nowSeconds)}.`,
  );
}

/** The secret goes to standard output alone, so that a script can take it; people read the rest on standard error. */
function printSecret({ terminal }: CliContext, id: string, secret: string, { quiet }: SecretOptions): void {
  terminal.print(terminal.out.bold(printable(secret)));
  if (quiet) return;
  terminal.note(terminal.err.bold("This is the only time the secret is shown: store it now."));
  terminal.note(terminal.err.dim(`Its client id is ${printable(id)}.`));
}

function summary(app: ListedApp): string {
  return printable(`${app.type}, ${app.environment}, ${app.scopes.join(", ")}`);
}

/** The fields of a request, null where it clears; empty where no option was given. */
function settingFields({ redirectUri, homepage, scopes, requirePkce }: AppSettings): Record<string, unknown> {
  const uris = redirectUri?.length === 1 && redirectUri[0] === "none" ? [] : redirectUri;
  return {
    ...(uris === undefined ? {} : { redirect_uris: uris }),
    ...(homepage === undefined ? {} : { homepage_url: homepage === "none" ? null : homepage }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(requirePkce === undefined ? {} : { require_pkce: requirePkce }),
  };
}
