// `headrace models show`, `add`, `set` and `remove`: what operators declare of models at a server.
import { type Outcome, refuseNoChange } from "../command.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { printable } from "../terminal/terminal.ts";
import { modelArgument, modelPath, operatorNeeds, printModel, understoodModel } from "./model-records.ts";
import { modelFields, modelSettings, settingsHelp } from "./model-settings.ts";

const json = ["--json", "print the model as the API gives it"] as const;

export const showCommand = serverCommand({
  name: "show",
  summary: "show one model: price, places, who declares it",
  description: `Show everything about one model. ${operatorNeeds}`,
  arguments: [modelArgument],
  options: { json },
  examples: ["headrace models show gpt-4o-mini"],
  run: async (call, id) => tell(call, await call.request(modelPath(id))),
});

export const addCommand = serverCommand({
  name: "add",
  summary: "declare a model under a new id",
  description: `Declare a model: a new name, or the id under which an upstream lists it. ${operatorNeeds}`,
  arguments: [["<id>", "what clients send"]],
  options: { ...modelSettings, json },
  examples: [
    "headrace models add fast --deployment vllm=meta-llama/Llama-3.1-8B-Instruct",
    "headrace models add best --deployment a*3=qwen3 --deployment b=qwen3 --fallbacks fast",
  ],
  help: [settingsHelp],
  async run(call, id) {
    const body = { id, ...modelFields(call.options) };
    return tell(call, await call.request("/admin/models", { method: "POST", body }));
  },
});

export const setCommand = serverCommand({
  name: "set",
  summary: "set a model's price, places, stand-ins and the like",
  description: `Change a model of any upstream; what is not given stays. What headrace.yaml declares is changed there alone. ${operatorNeeds}`,
  arguments: [modelArgument],
  options: { ...modelSettings, json },
  examples: [
    "headrace models set gpt-4o-mini --price input=0.15,output=0.60",
    "headrace models set fast --fallbacks gpt-4o-mini --context 8192",
    "headrace models set fast --aliases 'claude-*,gpt-5'",
    "headrace models set fast --price none",
  ],
  help: [settingsHelp],
  async run(call, id) {
    const body = modelFields(call.options);
    refuseNoChange(body, "--price input=0.15,output=0.60");
    return tell(call, await call.request(modelPath(id), { method: "PATCH", body }));
  },
});

export const removeCommand = serverCommand({
  name: "remove",
  summary: "take back what was declared of a model",
  description: `Remove what was declared of a model at the server, its price included. ${operatorNeeds}`,
  arguments: [modelArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace models remove fast"],
  help: ["A GGUF file that was pulled is deleted with: headrace rm <model>"],
  async run({ connect, request, confirm, terminal }, id) {
    const { settings } = understoodModel(await request(modelPath(id)), await connect());
    await confirm({
      question: `Remove what was declared of the model ${id}`,
      consequence:
        (settings?.deployments?.length ?? 0) > 0
          ? "It can no longer be called, unless an upstream lists a model of this id."
          : "It has no price then, and what it uses is not counted as spend.",
    });
    const answer = await request(modelPath(id), { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`What was declared of ${printable(id)} is removed.`) };
  },
});

async function tell({ connect, terminal }: ServerCall<unknown>, answer: unknown): Promise<Outcome> {
  const connection = await connect();
  return { json: answer, show: () => printModel(terminal, understoodModel(answer, connection)) };
}
