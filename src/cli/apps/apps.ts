// `headrace apps`: lists, shows and deletes apps; making and changing them is in app-changes.ts.
import { suspensionCommands } from "../admin/suspension.ts";
import { command, printRows } from "../command.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatRelative } from "../terminal/figures.ts";
import { CliError } from "../terminal/terminal.ts";
import { usageCommand } from "../usage/usage.ts";
import { createCommand, rotateSecretCommand, updateCommand } from "./app-changes.ts";
import { appArgument, appPath, findApp, listApps, printApp, shownApp } from "./app-records.ts";

const listCommand = serverCommand({
  name: "list",
  summary: "list the apps",
  description: "List the apps that you may see.",
  options: { json: ["--json", "print all of them as the API gives them"] },
  examples: ["headrace apps list", "headrace apps list --json"],
  async run({ ask, terminal, nowSeconds }) {
    const found = await ask(listApps);
    const show = () => {
      if (found.length === 0) {
        return terminal.note("There is no app yet. Register one with: headrace apps create <name>");
      }
      const now = nowSeconds();
      printRows(terminal, found, [
        ["NAME", ({ app }) => app.name],
        ["TYPE", ({ app }) => app.type],
        ["CREATED", ({ app }) => formatRelative(app.created_at, now)],
        ["CLIENT ID", ({ app }) => app.id],
      ]);
    };
    return { json: found.map(({ raw }) => raw), show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show one app",
  description: "Show one app without its secret.",
  arguments: [appArgument],
  options: { json: ["--json", "print the app as the API gives it"] },
  examples: ["headrace apps show Notes", "headrace apps show Notes --json"],
  async run({ ask, context, terminal }, wanted) {
    const { raw, app } = await ask((connection, signal) => findApp(connection, wanted, signal));
    return { json: raw, show: () => printApp(terminal, app, context.nowMs()) };
  },
});

const deleteCommand = serverCommand({
  name: "delete",
  summary: "delete an app permanently",
  description: "Delete an app and revoke all its tokens.",
  arguments: [appArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace apps delete Notes", "headrace apps delete Notes --yes"],
  async run({ ask, request, confirm, terminal }, wanted) {
    const { app } = await ask((connection, signal) => findApp(connection, wanted, signal));
    await confirm({
      question: `Delete app ${shownApp(app)}`,
      consequence: "It loses its access to everyone who allowed it.",
    });
    const answer = await request(appPath(app.id), { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`App ${shownApp(app)} is deleted.`) };
  },
});

const appUsageCommand = usageCommand({
  summary: "show the usage of an app over all accounts",
  description: "Show the usage of one app by all people who allowed it.",
  arguments: [appArgument],
  examples: ["headrace apps usage Notes", "headrace apps usage Notes --days 7 --group-by model"],
  async path({ ask }, wanted) {
    const { app } = await ask((connection, signal) => findApp(connection, wanted, signal));
    return `${appPath(app.id)}/usage`;
  },
});

const suspension = suspensionCommands({
  group: "apps",
  argument: appArgument,
  example: "Notes",
  refuses: "an app's tokens for all people",
  needs: "For apps of other accounts it takes an operator's key, and the id of the app.",
  async find({ connect, ask }, wanted) {
    const connection = await connect();
    const own = await ask((_, signal) => findApp(connection, wanted, signal)).catch((error: unknown) => {
      if (error instanceof CliError && wanted.startsWith("app_")) return undefined;
      throw error;
    });
    return own
      ? { path: appPath(own.app.id), name: shownApp(own.app) }
      : { path: `/admin${appPath(wanted)}`, name: wanted };
  },
});

export const appsCommand = command({
  name: "apps",
  summary: "register and manage apps that people can allow (OAuth clients)",
  description:
    "Manage the third-party apps of the account: OAuth clients that people can allow to act for them. Needs a login, or a key with the scope keys:manage.",
  examples: [
    "headrace apps create Notes --redirect-uri https://notes.example/callback",
    "headrace apps list",
    "headrace apps rotate-secret Notes --overlap 12h",
    "headrace apps suspend Notes                       at once, and resume later",
    "headrace apps delete Notes",
  ],
  commands: [
    ...[listCommand, showCommand, createCommand, updateCommand, rotateSecretCommand],
    ...[...suspension, deleteCommand, appUsageCommand],
  ],
});
