// `headrace models`: lists what a running server serves.
import type { Command } from "commander";
import { z } from "zod";
import { requestJson } from "./api-request.ts";
import {
  addConnectionOptions,
  type Connection,
  type ConnectionOptions,
  connectionHelp,
  findConnection,
} from "./client.ts";
import type { CliContext } from "./context.ts";
import { CliError, formatTable, interruptible } from "./terminal.ts";

export interface ModelsOptions extends ConnectionOptions {
  json?: boolean;
}

const examples = `
Examples:
  headrace models
  headrace models --json
  headrace models --base-url https://ai.example.com/v1 --api-key-stdin < key.txt
${connectionHelp}`;

export function registerModels(program: Command, context: CliContext): void {
  const command = program
    .command("models")
    .summary("list the models of a running server")
    .description("List the models that a running Headrace serves to this key.");
  addConnectionOptions(command)
    .option("--json", "print the list as the API gives it")
    .addHelpText("after", examples)
    .action((options: ModelsOptions) => listModels(context, options));
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

function capabilitiesOf({ capabilities = {} }: ListedModel): string {
  const names = (["chat", "completion", "embeddings"] as const).filter((name) => capabilities[name] === true);
  return names.join(", ") || "-";
}
