// `headrace apply` and `headrace diff`: compare files with the objects of a server, and make the objects what the
// files say.

import { z } from "zod";
import { understood } from "../login/api-request.ts";
import type { ServerCall } from "../login/server-command.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { CliError, exitCodes, printable, type Terminal } from "../terminal/terminal.ts";
import { located, readDocuments } from "./documents.ts";
import { SecretFiles } from "./secret-files.ts";

const change = z.object({
  field: z.string(),
  before: z.unknown().optional(),
  after: z.unknown().optional(),
  secret: z.boolean(),
});
const planned = z.object({
  ...{ kind: z.string(), name: z.string(), action: z.string(), changes: z.array(change) },
  secret: z.string().optional(),
});
const applied = z.object({ digest: z.string(), data: z.array(planned) });
type Planned = z.infer<typeof planned>;

const options = {
  file: [
    "-f, --file <path>",
    "a file, a directory with YAML files, or - for standard input; repeatable",
    (path: string, before: string[] | undefined): string[] => [...(before ?? []), path],
  ],
  managedBy: ["--managed-by <name>", "name of this set of files, the owner of its objects (default: headrace)"],
  prune: ["--prune", "also delete objects of this set that no file has, and suspend its accounts; needs --managed-by"],
  secretsDir: ["--secrets-dir <path>", "directory for secrets of new keys and webhooks without secret_to"],
  json: ["--json", "print the changes as the API gives them"],
} as const;

interface Options {
  file?: string[];
  managedBy?: string;
  prune?: boolean;
  secretsDir?: string;
  replaceLost?: boolean;
}

const documentHelp = `\
A document has a kind (tier, account, upstream, model, mcp_server, webhook, key), a name, and
a spec with the settings as the API has them. Settings that are left out have their default
values. secret_to beside the name is the file for the secret of a new key or webhook.
\${NAME} is replaced by the environment variable, so secrets stay out of the files.`;

export const applyCommand = serverCommand({
  name: "apply",
  summary: "make the server's objects what files say",
  description: `Show how the objects of the server differ from the files, and change them. ${operatorNeeds}`,
  options: {
    ...options,
    replaceLost: ["--replace-lost", "replace keys and webhooks whose secret is not in its file, unless a key was used"],
    plan: ["--plan", "only show what would change"],
    yes: ["-y, --yes", "change without asking"],
  },
  examples: [
    "headrace apply -f headrace.d/",
    "headrace apply -f headrace.d/ --managed-by production --prune --yes",
    "headrace export | headrace apply -f - --yes --base-url https://other.example.com/v1",
  ],
  help: [
    documentHelp,
    `An object that another set of files manages is refused. If the command is interrupted,
run it again: it goes on with what is left.`,
  ],
  async run(call) {
    const { options: given, terminal, confirm } = call;
    const { plan, request, secrets } = await plannedChanges(call, given);
    const changed = plan.data.filter(({ action }) => action !== "none");
    for (const { kind, name } of given.replaceLost ? [] : secrets.lost()) {
      if (plan.data.some((one) => one.kind === kind && one.name === name && one.action === "create")) continue;
      terminal.note(
        `The file with the secret of ${kind} ${printable(name)} does not exist here. If the secret is lost, run again with --replace-lost.`,
      );
    }
    if (given.plan || changed.length === 0) return { json: plan, show: () => printPlan(terminal, plan.data) };
    secrets.requireRoom(plan.data);
    if (!given.json) printPlan(terminal, plan.data);
    await confirm({
      question: `Make ${changed.length === 1 ? "this change" : `these ${changed.length} changes`}`,
      canBeUndone: changed.every(({ action }) => action !== "delete"),
    });
    const answer = await request({ expect: plan.digest });
    const paths = await secrets.write(answer.data);
    return {
      // The secrets were written to files, so the JSON output leaves them out.
      json: { ...answer, data: answer.data.map(({ secret: _, ...one }) => one) },
      show() {
        for (const path of paths) terminal.print(`Wrote ${printable(path)}.`);
        terminal.print("Done.");
      },
    };
  },
});

export const diffCommand = serverCommand({
  name: "diff",
  summary: "show how the server's objects differ from files",
  description: `Show how the objects of the server differ from the files. ${operatorNeeds}`,
  options,
  examples: ["headrace diff -f headrace.d/", "headrace diff -f headrace.d/ --managed-by production --prune"],
  help: [documentHelp, "The exit code is 0 without differences, 2 with differences and 1 if the command failed."],
  async run(call) {
    const { plan } = await plannedChanges(call, call.options);
    const changed = plan.data.filter(({ action }) => action !== "none");
    const differs = changed.length === 1 ? "object differs" : "objects differ";
    return {
      json: plan,
      show: () => printPlan(call.terminal, plan.data),
      failure: changed.length === 0 ? undefined : `${changed.length} ${differs} from the files.`,
      exitCode: 2,
    };
  },
});

async function plannedChanges(
  call: ServerCall<unknown>,
  { file = [], managedBy, prune = false, secretsDir, replaceLost }: Options,
) {
  if (file.length === 0) throw new CliError("Name a file or directory with -f.", exitCodes.usage);
  if (prune && managedBy === undefined) {
    throw new CliError("--prune deletes objects of one set of files: name it with --managed-by.", exitCodes.usage);
  }
  const documents = await readDocuments(call.context, file);
  const connection = await call.connect();
  const secrets = new SecretFiles(documents, secretsDir);
  const lost = replaceLost ? secrets.lost() : [];
  const body = {
    managed_by: managedBy ?? "headrace",
    documents: documents.map(({ document }) => document),
    prune,
    lost,
  };
  const request = async (more: { plan?: true; expect?: string }) => {
    // An upstream that does not answer delays its creation by seconds.
    const asked = call.request("/admin/apply", { method: "POST", body: { ...body, ...more }, timeoutMs: null });
    return understood(applied, await located(documents, asked), connection, "plan");
  };
  return { plan: await request({ plan: true }), request, secrets };
}

const signs: Readonly<Record<string, string>> = {
  create: "+",
  replace: "~",
  adopt: "~",
  update: "~",
  suspend: "-",
  delete: "-",
};

function printPlan(terminal: Terminal, data: readonly Planned[]): void {
  const changed = data.filter(({ action }) => action !== "none");
  for (const { kind, name, action, changes } of changed) {
    const sign = signs[action] ?? "~";
    const style = sign === "+" ? "green" : sign === "-" ? "red" : "yellow";
    terminal.print(terminal.out[style](`${sign} ${action} ${kind} ${printable(name)}`));
    for (const one of changes) terminal.print(`    ${printable(changeText(one))}`);
  }
  terminal.print(changed.length === 0 ? "No changes." : `Plan: ${summary(changed)}.`);
}

function changeText({ field, before, after, secret }: z.infer<typeof change>): string {
  if (secret) return `${field}: changes (secret)`;
  const shown = (value: unknown) => (value === undefined ? "default" : JSON.stringify(value));
  return before === undefined ? `${field}: ${shown(after)}` : `${field}: ${shown(before)} → ${shown(after)}`;
}

function summary(changed: readonly Planned[]): string {
  const counts = Map.groupBy(changed, ({ action }) => action);
  return [...counts].map(([action, { length }]) => `${length} to ${action}`).join(", ");
}
