// `headrace models show`, `add`, `set` and `remove`: the models that operators declare on a server.

import type { ManagedModelWire } from "../../wire/models.ts";
import { type Outcome, refuseNoChange } from "../command.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { CliError, printable } from "../terminal/terminal.ts";
import { findFile, printFile, removeFile } from "./model-files.ts";
import { policyFields, policySettings } from "./model-policies.ts";
import { modelArgument, modelPath, operatorNeeds, printModel, understoodModel } from "./model-records.ts";
import { modelFields, modelSettings, settingsHelp } from "./model-settings.ts";

const json = ["--json", "print the model as the API gives it"] as const;

export const showCommand = serverCommand({
  name: "show",
  summary: "show one model: price, deployments, source and file",
  description: `Show everything about one model, its file on the server's disk included. ${operatorNeeds}`,
  arguments: [modelArgument],
  options: { json },
  examples: ["headrace models show gpt-4o-mini"],
  async run(call, id) {
    const { json, show } = await outcomeOf(call, await call.request(modelPath(id)));
    const file = await findFile(call, id);
    const both = () => {
      show();
      if (file) printFile(call.terminal, file);
    };
    return { json: { ...(json as object), file: file ?? null }, show: both };
  },
});

export const addCommand = serverCommand({
  name: "add",
  summary: "declare a model under a new id",
  description: `Declare a model: a new name, or the id under which an upstream lists it. ${operatorNeeds}`,
  arguments: [["<id>", "the id that clients send"]],
  options: { ...modelSettings, ...policySettings, json },
  examples: [
    "headrace models add fast --deployment vllm=meta-llama/Llama-3.1-8B-Instruct",
    "headrace models add best --deployment a*3=qwen3 --deployment b=qwen3 --fallbacks fast",
  ],
  help: [settingsHelp],
  async run(call, id) {
    const body = { id, ...modelFields(call.options), ...(await policyFields(call)) };
    return outcomeOf(call, await call.request("/admin/models", { method: "POST", body }));
  },
});

export const setCommand = serverCommand({
  name: "set",
  summary: "set a model's price, deployments, fallbacks and other settings",
  description: `Change a model of any upstream. Options that you leave out stay. Models in headrace.yaml are changed there only. ${operatorNeeds}`,
  arguments: [modelArgument],
  options: { ...modelSettings, ...policySettings, json },
  examples: [
    "headrace models set gpt-4o-mini --price input=0.15,output=0.60",
    "headrace models set fast --fallbacks gpt-4o-mini --context 8192",
    "headrace models set fast --aliases 'claude-*,gpt-5'",
    "headrace models set fast --price none",
    "headrace models set fast --continuation on --split next=10",
  ],
  help: [settingsHelp],
  async run(call, id) {
    const body = { ...modelFields(call.options), ...(await policyFields(call)) };
    refuseNoChange(body, "--price input=0.15,output=0.60");
    return outcomeOf(call, await call.request(modelPath(id), { method: "PATCH", body }));
  },
});

export const removeCommand = serverCommand({
  name: "remove",
  summary: "remove a model's settings, or delete its file",
  description: `Remove what was declared of a model at the server, its price included; of one that was only pulled, delete the file. ${operatorNeeds}`,
  arguments: [modelArgument],
  options: {
    file: ["--file", "delete the pulled file; the settings stay"],
    force: ["--force", "delete the file while requests use the model; they finish normally"],
    yes: ["-y, --yes", "do not ask"],
    json: ["--json", "print what the API gives"],
  },
  examples: ["headrace models remove fast", "headrace models remove qwen3-0.6b-q8_0 --file"],
  help: ["Without a server a file is deleted with: headrace rm <model>"],
  async run(call, id) {
    const file = await findFile(call, id);
    const { file: asked = false, force = false } = call.options;
    if (asked && !file)
      throw new CliError(`No model ${id} was pulled to this server. See: headrace models list --files`);
    // An incomplete download is never offered as a model, so only its file can be removed.
    if (file && (asked || file.state === "incomplete")) return removeFile(call, file, force);
    const declared = understoodModel(await call.request(modelPath(id)), await call.connect());
    if (file && declared.source !== "database") return removeFile(call, file, force);
    return removeDeclared(call, id, declared);
  },
});

async function removeDeclared(
  { request, confirm, terminal }: ServerCall<unknown>,
  id: string,
  declared: ManagedModelWire,
): Promise<Outcome> {
  await confirm({
    question: `Remove what was declared of the model ${id}`,
    consequence:
      (declared.settings?.deployments?.length ?? 0) > 0
        ? "It can no longer be called, unless an upstream lists a model of this id."
        : "It has no price then, and what it uses is not counted as spend.",
  });
  const answer = await request(modelPath(id), { method: "DELETE" });
  return { json: answer, show: () => terminal.print(`What was declared of ${printable(id)} is removed.`) };
}

async function outcomeOf({ connect, terminal }: ServerCall<unknown>, answer: unknown): Promise<Outcome> {
  const connection = await connect();
  return { json: answer, show: () => printModel(terminal, understoodModel(answer, connection)) };
}
