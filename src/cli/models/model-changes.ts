// `headrace models show`, `add`, `set` and `remove`: what operators declare of models at a server.
import type { Command } from "commander";
import { requestJson } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { confirm } from "../terminal/input.ts";
import { CliError, exitCodes, interruptible, printable } from "../terminal/terminal.ts";
import { modelArgument, modelPath, operatorNeeds, printModel, readModel, understoodModel } from "./model-records.ts";
import { addModelSettings, type ModelSettings, modelFields, settingsHelp } from "./model-settings.ts";

interface ChangeOptions extends ConnectionOptions, ModelSettings {
  json?: boolean;
  yes?: boolean;
}

export function registerModelChanges(models: Command, context: CliContext): void {
  const show = models
    .command("show")
    .summary("show one model: price, places, who declares it")
    .description(`Show everything about one model. ${operatorNeeds}`);
  addConnectionOptions(show.argument(...modelArgument).option("--json", "print the model as the API gives it"))
    .addHelpText("after", `\nExamples:\n  headrace models show gpt-4o-mini\n${connectionHelp}`)
    .action((id: string, options: ChangeOptions) =>
      tell(context, options, (connection, signal) => readModel(connection, id, signal)),
    );

  const add = models
    .command("add")
    .summary("declare a model under a new id")
    .description(`Declare a model: a new name, or the id under which an upstream lists it. ${operatorNeeds}`);
  addConnectionOptions(
    addModelSettings(add.argument("<id>", "what clients send")).option("--json", "print the model as the API gives it"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace models add fast --deployment vllm=meta-llama/Llama-3.1-8B-Instruct
  headrace models add best --deployment a*3=qwen3 --deployment b=qwen3 --fallbacks fast
${settingsHelp}
${connectionHelp}`,
    )
    .action((id: string, options: ChangeOptions) =>
      tell(context, options, (connection, signal) => {
        const body = { id, ...modelFields(options) };
        return requestJson(connection, "/admin/models", signal, { method: "POST", body });
      }),
    );

  const set = models
    .command("set")
    .summary("set a model's price, places, stand-ins and the like")
    .description(
      `Change a model of any upstream; what is not given stays. What headrace.yaml declares is changed there alone. ${operatorNeeds}`,
    );
  addConnectionOptions(
    addModelSettings(set.argument(...modelArgument)).option("--json", "print the model as the API gives it"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace models set gpt-4o-mini --price input=0.15,output=0.60
  headrace models set fast --fallbacks gpt-4o-mini --context 8192
  headrace models set fast --price none
${settingsHelp}
${connectionHelp}`,
    )
    .action((id: string, options: ChangeOptions) => {
      const body = modelFields(options);
      if (Object.keys(body).length === 0) {
        throw new CliError(
          "Nothing to change: give at least one option, such as --price input=0.15,output=0.60. See --help.",
          exitCodes.usage,
        );
      }
      return tell(context, options, (connection, signal) =>
        requestJson(connection, modelPath(id), signal, { method: "PATCH", body }),
      );
    });

  const remove = models
    .command("remove")
    .summary("take back what was declared of a model")
    .description(`Remove what was declared of a model at the server, its price included. ${operatorNeeds}`);
  addConnectionOptions(
    remove
      .argument(...modelArgument)
      .option("-y, --yes", "do not ask")
      .option("--json", "print what the API gives"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace models remove fast\n\nA GGUF file that was pulled is deleted with: headrace rm <model>\n${connectionHelp}`,
    )
    .action((id: string, options: ChangeOptions) => removeModel(context, id, options));
}

type Connection = Awaited<ReturnType<typeof findConnection>>;

async function tell(
  context: CliContext,
  options: ChangeOptions,
  ask: (connection: Connection, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const answer = await interruptible((signal) => ask(connection, signal));
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else printModel(terminal, understoodModel(answer, connection));
}

async function removeModel(context: CliContext, id: string, options: ChangeOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const connection = await findConnection(context, options);
  const found = await interruptible((signal) => readModel(connection, id, signal));
  const { settings } = understoodModel(found, connection);
  await confirm(input, {
    question: `Remove what was declared of the model ${id}`,
    consequence:
      (settings?.deployments?.length ?? 0) > 0
        ? "It can no longer be called, unless an upstream lists a model of this id."
        : "It has no price then, and what it uses is not counted as spend.",
    yes: options.yes,
  });
  const answer = await interruptible((signal) => requestJson(connection, modelPath(id), signal, { method: "DELETE" }));
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else terminal.print(`What was declared of ${printable(id)} is removed.`);
}
