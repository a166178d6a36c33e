// `headrace models`: lists the models that a running server serves. Operators' changes are in model-changes.ts.

import { z } from "zod";
import { byCapability, capabilityNames } from "../../domain/models/capabilities.ts";
import type { ManagedModelWire } from "../../wire/models.ts";
import { command, type Outcome, printRows } from "../command.ts";
import { ApiError, requestJson, requestWholeList } from "../login/api-request.ts";
import { connectionOptions } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { formatCount } from "../terminal/figures.ts";
import { CliError, printable, type Terminal } from "../terminal/terminal.ts";
import { compareCommand } from "./compare.ts";
import { addCommand, removeCommand, setCommand, showCommand } from "./model-changes.ts";
import { listFiles } from "./model-files.ts";
import { loadCommand, logCommand, pinCommand, psCommand, stopCommand, unpinCommand } from "./model-processes.ts";
import { priceText, sourceNames, understoodModel } from "./model-records.ts";

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the models (the default)",
  description: "List the models that a running Headrace serves to this key.",
  options: {
    ...connectionOptions,
    all: ["-a, --all", "all models with price, state and who declares them; for operators"],
    files: [
      "--files",
      "files on the server's disk: size, memory that they need, whether they are loaded; for operators, and for the first key on its machine",
    ],
    json: ["--json", "print the list as the API gives it"],
  },
  examples: [
    "headrace models",
    "headrace models --json",
    "headrace models --all",
    "headrace models list --files",
    "headrace models --base-url https://ai.example.com/v1 --api-key-stdin < key.txt",
  ],
  run(call) {
    if (call.options.files) return listFiles(call);
    return call.options.all ? listAllModels(call) : listModels(call);
  },
});

export const modelsCommand = command({
  name: "models",
  summary: "list the models of a running server; set prices and deployments",
  description: "List the models of a running Headrace, and change the settings of each.",
  examples: [
    "headrace models                              those that this key may use",
    "headrace models --all                        all, with price and state",
    "headrace models set gpt-4o-mini --price input=0.15,output=0.60",
    "headrace models add fast --deployment vllm=meta-llama/Llama-3.1-8B-Instruct",
    "headrace models remove fast",
    "headrace models ps                           what is loaded, loading or waiting for memory",
    "headrace models log qwen3 --follow",
    "headrace models compare llama3.3             beside its shadow and the models of its split",
  ],
  help: ["Without a server, pulled files are listed by headrace list, and deleted by headrace rm."],
  commands: [
    ...[listCommand, showCommand, addCommand, setCommand, removeCommand],
    ...[psCommand, loadCommand, stopCommand, pinCommand, unpinCommand, logCommand],
    compareCommand,
  ],
});

const modelList = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      owned_by: z.string().optional(),
      context_length: z.number().nullish(),
      /** If this entry is an alias, the id of its model. */
      alias_of: z.string().optional(),
      price: z.unknown().optional(),
      capabilities: z.object(byCapability(() => z.boolean().optional())).optional(),
    }),
  ),
});

export type ListedModel = z.infer<typeof modelList>["data"][number];

/** Returns the models that the connection's key may use. */
export async function readModels(connection: Connection, signal: AbortSignal): Promise<readonly ListedModel[]> {
  return understoodModels(await requestJson(connection, "/models", signal), connection);
}

function understoodModels(answer: unknown, { baseUrl }: Connection): readonly ListedModel[] {
  const list = modelList.safeParse(answer);
  if (list.success) return list.data.data;
  throw new CliError(`${baseUrl} answered with JSON that is no model list. Is it a Headrace?`);
}

const percentiles = z.object({ p50: z.number(), p95: z.number(), p99: z.number() });
const statusList = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      deployments: z.array(
        z.object({
          ...{ upstream: z.string(), state: z.string(), attempts: z.object({ summary: z.string() }).nullish() },
          percentiles: z.object({ first_token_ms: percentiles.nullable(), total_ms: percentiles }).nullish(),
        }),
      ),
    }),
  ),
});

type Deployment = z.infer<typeof statusList>["data"][number]["deployments"][number] & { id: string };
type FailingDeployment = Pick<Deployment, "id" | "upstream" | "attempts">;

/**
 * Returns the deployments with their states. Empty if the server is too old to report them, or if the key may not read
 * them.
 */
async function readStatus(request: ServerCall<unknown>["request"]): Promise<Deployment[]> {
  const answer = await request("/model-status").catch((error: unknown) => {
    if (error instanceof ApiError) return undefined;
    throw error;
  });
  const { data } = statusList.safeParse(answer);
  return data?.data.flatMap(({ id, deployments }) => deployments.map((one) => ({ ...one, id }))) ?? [];
}

function printTimes(terminal: Terminal, deployments: readonly Deployment[]): void {
  const text = (times: z.infer<typeof percentiles> | null) =>
    times ? `${[times.p50, times.p95, times.p99].map((ms) => formatCount(Math.round(ms))).join("/")} ms` : "-";
  const measured = deployments.flatMap(({ percentiles: times, ...one }) => (times ? [{ ...one, times }] : []));
  if (measured.length === 0) return;
  terminal.print("\nLast 15 minutes, p50/p95/p99:");
  printRows(terminal, measured, [
    ["MODEL", ({ id }) => id],
    ["RUNS AT", ({ upstream }) => upstream],
    ["FIRST TOKEN", ({ times }) => text(times.first_token_ms)],
    ["WHOLE ANSWER", ({ times }) => text(times.total_ms)],
  ]);
}

function printFailing(terminal: Terminal, failing: readonly FailingDeployment[]): void {
  for (const { id, upstream, attempts } of failing) {
    const said = attempts ? `: ${attempts.summary}` : "";
    terminal.print(printable(`${id} is failing at ${upstream}${said}`));
  }
}

async function listModels({ connect, request, terminal }: ServerCall<unknown>): Promise<Outcome> {
  const [answer, deployments] = await Promise.all([request("/models"), readStatus(request)]);
  const models = understoodModels(answer, await connect()).filter(({ alias_of: model }) => model === undefined);
  const show = () => {
    if (models.length === 0) {
      return terminal.note(
        "The server serves no model to this key. Fetch one with: headrace pull hf:Qwen/Qwen3-0.6B-GGUF",
      );
    }
    printRows(terminal, models, [
      ["MODEL", ({ id }) => id],
      ["CAPABILITIES", capabilitiesOf],
      ["CONTEXT", ({ context_length: context }) => (context == null ? "-" : String(context))],
      ["OWNER", ({ owned_by: owner }) => owner ?? "-"],
    ]);
    printTimes(terminal, deployments);
    printFailing(
      terminal,
      deployments.filter(({ state }) => state === "failing"),
    );
  };
  // The entries are printed as received, because --json passes on fields unknown to this version.
  return { json: (answer as { data: unknown[] }).data, show };
}

async function listAllModels({ connect, ask, terminal }: ServerCall<unknown>): Promise<Outcome> {
  const connection = await connect();
  const raw = await ask((_, signal) => requestWholeList(connection, "/admin/models", "list of models", signal));
  const show = () => {
    const models = raw.map((entry) => understoodModel(entry, connection));
    printRows(terminal, models, [
      ["MODEL", ({ id }) => id],
      ["STATE", stateText],
      ["USD/M TOKENS", ({ price }) => priceText(price)],
      ["RUNS AT", ({ deployments }) => [...new Set(deployments.map(({ upstream }) => upstream))].join(", ") || "-"],
      ["FROM", ({ source }) => sourceNames[source]],
    ]);
    const failing = models.flatMap(({ id, deployments }) => deployments.map((one) => ({ ...one, id })));
    printFailing(
      terminal,
      failing.filter(({ state }) => state === "failing"),
    );
  };
  return { json: raw, show };
}

/** Returns the model's state. A failing deployment and the states of processes that start on demand follow. */
function stateText({ status, deployments }: ManagedModelWire): string {
  const states = new Set(
    deployments.flatMap(({ process, state }) => [
      ...(state === "failing" ? [state] : []),
      ...(process === null ? [] : [process]),
    ]),
  );
  return [status, ...states].join(", ");
}

function capabilitiesOf({ capabilities = {} }: ListedModel): string {
  const names = capabilityNames.filter((name) => capabilities[name] === true);
  return names.join(", ") || "-";
}
