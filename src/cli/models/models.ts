// `headrace models`: lists what a running server serves; what operators change of it is in model-changes.ts.
import type { Command } from "commander";
import { z } from "zod";
import { requestJson, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError, formatTable, interruptible } from "../terminal/terminal.ts";
import { registerModelChanges } from "./model-changes.ts";
import { priceText, sourceNames, understoodModel } from "./model-records.ts";

export interface ModelsOptions extends ConnectionOptions {
  json?: boolean;
  all?: boolean;
}

const listExamples = `
Examples:
  headrace models
  headrace models --json
  headrace models --all
  headrace models --base-url https://ai.example.com/v1 --api-key-stdin < key.txt
${connectionHelp}`;

export function registerModels(program: Command, context: CliContext): void {
  const models = program
    .command("models")
    .summary("list the models of a running server; set their prices and places")
    .description("The models that a running Headrace serves, and what operators declare of them.")
    .addHelpText(
      "after",
      `
Examples:
  headrace models                              those that this key may use
  headrace models --all                        all, with price and state
  headrace models set gpt-4o-mini --price input=0.15,output=0.60
  headrace models add fast --deployment vllm=meta-llama/Llama-3.1-8B-Instruct
  headrace models remove fast

Pulled files are listed by headrace list, and deleted by headrace rm.`,
    );
  const list = models
    .command("list", { isDefault: true })
    .summary("list the models (the default)")
    .description("List the models that a running Headrace serves to this key.");
  addConnectionOptions(list)
    .option("-a, --all", "all models with price, state and who declares them; for operators")
    .option("--json", "print the list as the API gives it")
    .addHelpText("after", listExamples)
    .action((options: ModelsOptions) => (options.all ? listAllModels(context, options) : listModels(context, options)));
  registerModelChanges(models, context);
}

// Unchecked entries in the order of the server: --json passes on what this version does not know.
const rawList = z.object({ data: z.array(z.unknown()) });

const modelList = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      owned_by: z.string().optional(),
      context_length: z.number().nullish(),
      capabilities: z
        .object({
          chat: z.boolean().optional(),
          completion: z.boolean().optional(),
          embeddings: z.boolean().optional(),
        })
        .optional(),
    }),
  ),
});

export type ListedModel = z.infer<typeof modelList>["data"][number];

/** The models that the connection's key may use. */
export async function readModels(connection: Connection, signal: AbortSignal): Promise<readonly ListedModel[]> {
  return understoodModels(await requestJson(connection, "/models", signal), connection);
}

function understoodModels(answer: unknown, { baseUrl }: Connection): readonly ListedModel[] {
  const list = modelList.safeParse(answer);
  if (list.success) return list.data.data;
  throw new CliError(`${baseUrl} answered with JSON that is no model list. Is it a Headrace?`);
}

async function listModels(context: CliContext, options: ModelsOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const answer = await interruptible((signal) => requestJson(connection, "/models", signal));
  const models = understoodModels(answer, connection);
  if (options.json) {
    terminal.print(JSON.stringify(rawList.parse(answer).data, undefined, 2));
    return;
  }
  if (models.length === 0) {
    terminal.note("The server serves no model to this key. Fetch one with: headrace pull hf:Qwen/Qwen3-0.6B-GGUF");
    return;
  }
  const rows = models.map((model) => [
    model.id,
    capabilitiesOf(model),
    model.context_length == null ? "-" : String(model.context_length),
    model.owned_by ?? "-",
  ]);
  terminal.print(formatTable(["MODEL", "CAPABILITIES", "CONTEXT", "OWNER"], rows, terminal.out));
}

async function listAllModels(context: CliContext, options: ModelsOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const answer = await interruptible((signal) => requestJson(connection, "/admin/models", signal));
  const raw = understood(rawList, answer, connection, "list of models").data;
  if (options.json) {
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  const models = raw.map((entry) => understoodModel(entry, connection));
  const rows = models.map((model) => [
    model.id,
    model.status,
    priceText(model.price),
    [...new Set(model.deployments.map(({ upstream }) => upstream))].join(", ") || "-",
    sourceNames[model.source],
  ]);
  terminal.print(formatTable(["MODEL", "STATE", "USD/M TOKENS", "RUNS AT", "FROM"], rows, terminal.out));
}

function capabilitiesOf({ capabilities = {} }: ListedModel): string {
  const names = (["chat", "completion", "embeddings"] as const).filter((name) => capabilities[name] === true);
  return names.join(", ") || "-";
}
