// `headrace apps create`, `update` and `rotate-secret`: create or change an app.
import { z } from "zod";
import { appScopes, defaultAppScopes, defaultSecretOverlapSeconds } from "../../domain/people/app.ts";
import { scopeMeanings } from "../../domain/scope.ts";
import { type OptionValues, refuseNoChange } from "../command.ts";
import { parseOverlap } from "../keys/key-changes.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { parseScopes, parseTools, toolsForm } from "../keys/key-settings.ts";
import { requestJson, understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { appArgument, appPath, appRecord, findApp, type ListedApp, printApp, shownApp } from "./app-records.ts";

const appWithSecret = appRecord.extend({ client_secret: z.string().optional() });
const rotatedApp = appRecord.extend({ client_secret: z.string() });

const scopesHelp = `Scopes an app can have:
${appScopes.map((scope) => `  ${scope.padEnd(11)}  ${scopeMeanings[scope]}`).join("\n")}`;

const secretHelp = `\
The secret is printed once, alone on standard output; everything else goes to
standard error. It cannot be shown again.`;

export const createCommand = serverCommand({
  name: "create",
  summary: "register an app",
  description: "Register an app: an OAuth client that people can allow to act for their account.",
  arguments: [["<name>", "shown to people who are asked to allow it"]],
  options: {
    ...appSettings({ clearable: false }),
    public: ["--public", "runs on people's devices and cannot keep a secret"],
    requirePkce: ["--require-pkce", "refuse requests without PKCE; a public app's always are"],
    quiet: ["-q, --quiet", "print the secret and nothing else"],
    json: ["--json", "print what the API gives, the secret included"],
  },
  examples: [
    "headrace apps create Notes --redirect-uri https://notes.example/callback",
    `headrace apps create "Notes for phones" --public --redirect-uri com.example.notes:/callback`,
    "headrace apps create Editor --public --redirect-uri http://127.0.0.1/callback",
    "headrace apps create Television --public",
  ],
  help: [scopesHelp, `${secretHelp} Of a public app, which has none, the client id is printed instead.`],
  async run({ connect, request, options, terminal }, name) {
    refuseSecret(name);
    const body = { name, ...(options.public ? { type: "public" } : {}), ...settingFields(options) };
    const answer = await request("/apps", { method: "POST", body });
    const made = understood(appWithSecret, answer, await connect(), "new app");
    const show = () => {
      const summary = printable(`${made.type}, ${made.environment}, ${made.scopes.join(", ")}`);
      if (!options.quiet) terminal.note(`App ${shownApp(made)} is registered: ${summary}.`);
      if (made.client_secret === undefined) terminal.print(terminal.out.bold(printable(made.id)));
      else printSecret(terminal, made, made.client_secret, options.quiet);
    };
    return { json: answer, show };
  },
});

export const updateCommand = serverCommand({
  name: "update",
  summary: "change an app",
  description: "Change an app. Its type stays as it is.",
  arguments: [appArgument],
  options: {
    name: ["--name <name>", "another name"],
    ...appSettings({ clearable: true }),
    requirePkce: ["--require-pkce", "refuse requests without PKCE"],
    noRequirePkce: ["--no-require-pkce", "take requests without PKCE; not of a public app"],
    json: ["--json", "print the app as the API gives it"],
  },
  examples: [
    "headrace apps update Notes --redirect-uri https://notes.example/callback --redirect-uri http://127.0.0.1/callback",
    "headrace apps update Notes --scopes chat:write,chat:read --homepage https://notes.example/",
    `headrace apps update Notes --name "Notes 2" --homepage none`,
  ],
  help: [scopesHelp],
  async run({ connect, ask, context, options, terminal }, wanted) {
    const { name } = options;
    if (name !== undefined) refuseSecret(name);
    const body = { ...(name === undefined ? {} : { name }), ...settingFields(options) };
    refuseNoChange(body, "--redirect-uri https://notes.example/callback");
    const connection = await connect();
    const answer = await ask(async (_, signal) => {
      const { app } = await findApp(connection, wanted, signal);
      return requestJson(connection, appPath(app.id), signal, { method: "PATCH", body });
    });
    const show = () => printApp(terminal, understood(appRecord, answer, connection, "app"), context.nowMs());
    return { json: answer, show };
  },
});

export const rotateSecretCommand = serverCommand({
  name: "rotate-secret",
  summary: "replace an app's secret by a new one",
  description: "Make a new secret. The old one stays valid for a while.",
  arguments: [appArgument],
  options: {
    overlap: [
      "--overlap <span>",
      "how long the old secret stays valid, such as 12h; 0: not at all (default: 24h)",
      parseOverlap,
    ],
    yes: ["-y, --yes", "do not ask; it only asks with --overlap 0"],
    quiet: ["-q, --quiet", "print the new secret and nothing else"],
    json: ["--json", "print what the API gives, the new secret included"],
  },
  examples: [
    "headrace apps rotate-secret Notes",
    "headrace apps rotate-secret Notes --overlap 7d --quiet",
    "headrace apps rotate-secret Notes --overlap 0 --yes",
  ],
  help: [secretHelp],
  async run({ connect, ask, request, confirm, options, terminal, nowSeconds }, wanted) {
    const { overlap, quiet } = options;
    const { app } = await ask((connection, signal) => findApp(connection, wanted, signal));
    if (overlap === 0) {
      await confirm({ question: `Replace the secret of app ${shownApp(app)} and end the old one at once` });
    }
    const body = overlap === undefined ? {} : { overlap_seconds: overlap };
    const answer = await request(`${appPath(app.id)}/rotate-secret`, { method: "POST", body });
    const rotated = understood(rotatedApp, answer, await connect(), "app with a new secret");
    const show = () => {
      if (!quiet) terminal.note(`App ${shownApp(app)} has a new secret.`);
      printSecret(terminal, app, rotated.client_secret, quiet);
      if (quiet) return;
      const now = nowSeconds();
      const until = formatTimeAndRelative(now + (overlap ?? defaultSecretOverlapSeconds), now);
      terminal.note(`The old secret works ${overlap === 0 ? "no more" : `until ${until}`}.`);
    };
    return { json: answer, show };
  },
});

/**
 * Returns the options for an app's settings. `clearable` is true if the app exists already, so that `none` clears a
 * setting.
 */
function appSettings({ clearable }: { clearable: boolean }) {
  const none = clearable ? ", or none" : "";
  const scopesDefault = clearable ? "" : ` (default: ${defaultAppScopes.join(",")})`;
  return {
    redirectUri: [
      "--redirect-uri <uri>",
      `redirect URI after sign-in${clearable ? `${none}; replaces the current list` : ""}; repeatable`,
      (uri: string, before: string[] | undefined) => [...(before ?? []), uri],
    ],
    homepage: ["--homepage <url>", `an https page about the app${none}`],
    scopes: ["--scopes <scopes>", `scopes it may request, separated by commas${scopesDefault}`, parseScopes],
    tools: ["--tools <names>", `the most of tools that it uses: ${toolsForm}`, parseTools],
  } as const;
}

type AppSettings = OptionValues<ReturnType<typeof appSettings>> & { requirePkce?: boolean };

/** Only the secret goes to standard output, so that a script can capture it. The rest goes to standard error. */
function printSecret(terminal: Terminal, { id }: ListedApp, secret: string, quiet: boolean | undefined): void {
  terminal.print(terminal.out.bold(printable(secret)));
  if (quiet) return;
  terminal.note(terminal.err.bold("This is the only time the secret is shown: store it now."));
  terminal.note(terminal.err.dim(`Its client id is ${printable(id)}.`));
}

/** Returns the fields of the request, with null for each setting to clear. Empty if no option was given. */
function settingFields({ redirectUri, homepage, scopes, tools, requirePkce }: AppSettings): Record<string, unknown> {
  const uris = redirectUri?.length === 1 && redirectUri[0] === "none" ? [] : redirectUri;
  return {
    ...(uris === undefined ? {} : { redirect_uris: uris }),
    ...(homepage === undefined ? {} : { homepage_url: homepage === "none" ? null : homepage }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(tools === undefined ? {} : { tools: tools === "none" ? null : tools }),
    ...(requirePkce === undefined ? {} : { require_pkce: requirePkce }),
  };
}
