// `headrace apps`: lists, shows and deletes apps; making and changing them is in app-changes.ts.
import type { Command } from "commander";
import { requestJson } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatRelative } from "../terminal/figures.ts";
import { confirm } from "../terminal/input.ts";
import { formatTable, interruptible } from "../terminal/terminal.ts";
import { addUsageOptions, showUsage, type UsageOptions, usageHelp } from "../usage/usage.ts";
import { registerAppChanges } from "./app-changes.ts";
import { appArgument, appPath, findApp, listApps, printApp, shownApp } from "./app-records.ts";

interface AppsOptions extends ConnectionOptions {
  json?: boolean;
  yes?: boolean;
}

export function registerApps(program: Command, context: CliContext): void {
  const apps = program
    .command("apps")
    .summary("register and manage apps that people can allow (OAuth clients)")
    .description(
      "Manage the third-party apps of the account: OAuth clients that people can allow to act for them. Needs a login, or a key with the scope keys:manage.",
    )
    .addHelpText(
      "after",
      `
Examples:
  headrace apps create Notes --redirect-uri https://notes.example/callback
  headrace apps list
  headrace apps rotate-secret Notes --overlap 12h
  headrace apps delete Notes`,
    );
  const list = apps.command("list").summary("list the apps").description("List the apps that you may see.");
  addConnectionOptions(list.option("--json", "print all of them as the API gives them"))
    .addHelpText("after", `\nExamples:\n  headrace apps list\n  headrace apps list --json\n${connectionHelp}`)
    .action((options: AppsOptions) => listAll(context, options));

  const show = apps
    .command("show")
    .summary("show one app")
    .description("Show everything about one app but its secret.");
  addConnectionOptions(show.argument(...appArgument).option("--json", "print the app as the API gives it"))
    .addHelpText(
      "after",
      `\nExamples:\n  headrace apps show Notes\n  headrace apps show Notes --json\n${connectionHelp}`,
    )
    .action((wanted: string, options: AppsOptions) => showOne(context, wanted, options));

  registerAppChanges(apps, context);

  const remove = apps
    .command("delete")
    .summary("end an app for good")
    .description("Delete an app with everything that people allowed it: its tokens are refused from then on.");
  addConnectionOptions(
    remove
      .argument(...appArgument)
      .option("-y, --yes", "do not ask")
      .option("--json", "print what the API gives"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace apps delete Notes\n  headrace apps delete Notes --yes\n${connectionHelp}`,
    )
    .action((wanted: string, options: AppsOptions) => deleteOne(context, wanted, options));

  const usage = apps
    .command("usage")
    .summary("what an app was used for, over all accounts")
    .description("Show what one app was used for, by everybody who allowed it.");
  addUsageOptions(usage.argument(...appArgument))
    .addHelpText(
      "after",
      `\nExamples:\n  headrace apps usage Notes\n  headrace apps usage Notes --days 7 --group-by model\n${usageHelp}\n${connectionHelp}`,
    )
    .action((wanted: string, options: UsageOptions) => usageOfOne(context, wanted, options));
}

async function listAll(context: CliContext, options: AppsOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const found = await interruptible((signal) => listApps(connection, signal));
  if (options.json) {
    const raw = found.map((one) => one.raw);
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  if (found.length === 0) {
    terminal.note("There is no app yet. Register one with: headrace apps create <name>");
    return;
  }
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const rows = found.map(({ app }) => [app.name, app.type, formatRelative(app.created_at, nowSeconds), app.id]);
  terminal.print(formatTable(["NAME", "TYPE", "CREATED", "CLIENT ID"], rows, terminal.out));
}

async function showOne(context: CliContext, wanted: string, options: AppsOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const { raw, app } = await interruptible((signal) => findApp(connection, wanted, signal));
  if (options.json) terminal.print(JSON.stringify(raw, undefined, 2));
  else printApp(terminal, app, context.nowMs());
}

async function deleteOne(context: CliContext, wanted: string, options: AppsOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const connection = await findConnection(context, options);
  const { app } = await interruptible((signal) => findApp(connection, wanted, signal));
  await confirm(input, {
    question: `Delete app ${shownApp(app)}`,
    consequence: "It can do nothing any more for those who allowed it.",
    yes: options.yes,
  });
  const answer = await interruptible((signal) =>
    requestJson(connection, appPath(app.id), signal, { method: "DELETE" }),
  );
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else terminal.print(`App ${shownApp(app)} is deleted.`);
}

async function usageOfOne(context: CliContext, wanted: string, options: UsageOptions): Promise<void> {
  context.begin();
  const connection = await findConnection(context, options);
  const { app } = await interruptible((signal) => findApp(connection, wanted, signal));
  await showUsage(context, connection, `${appPath(app.id)}/usage`, options);
}
