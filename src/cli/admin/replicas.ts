// `headrace replicas`: lists the server processes of a gateway, and drains them before work on their machines. For
// operators.
import { z } from "zod";
import { type Column, type CommandEntry, command, printRows } from "../command.ts";
import { requestJson, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatRelative } from "../terminal/figures.ts";
import { CliError, printable } from "../terminal/terminal.ts";

const replica = z.object({
  id: z.string(),
  advertise_url: z.string().nullish(),
  version: z.string(),
  started_at: z.number(),
  seen_at: z.number(),
  current: z.boolean(),
  draining: z.boolean(),
});
type Replica = z.infer<typeof replica>;

const system = z.object({ replicas: z.array(z.unknown()) });

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the replicas (the default)",
  description: `List the server processes that share the database. ${operatorNeeds}`,
  options: { json: ["--json", "print the list as the API gives it"] },
  examples: ["headrace replicas", "headrace replicas --json"],
  async run({ connect, ask, terminal, nowSeconds }) {
    const connection = await connect();
    const raw = await ask((_, signal) => readReplicas(connection, signal));
    const columns: Column<Replica>[] = [
      ["ID", ({ id }) => id],
      ["STATE", (one) => (one.draining ? "drained" : "serving")],
      ["", ({ current }) => (current ? "answers this" : "")],
      ["STARTED", ({ started_at: at }) => formatRelative(at, nowSeconds())],
      ["VERSION", ({ version }) => version],
      ["URL", ({ advertise_url: url }) => url ?? "-"],
    ];
    const show = () =>
      printRows(
        terminal,
        raw.map((one) => understood(replica, one, connection, "replica")),
        columns,
        [],
        [...["VERSION", "STARTED"]],
      );
    return { json: raw, show };
  },
});

const drainCommand = drainingCommand(true, {
  name: "drain",
  alias: "suspend",
  summary: "let load balancers send nothing new to a replica",
  description:
    "Let a replica report at /readyz that it is not ready, so that load balancers send it nothing new. It still answers what reaches it, until it is undrained or stops.",
  outcome: "is drained: /readyz says not ready.",
});

const undrainCommand = drainingCommand(false, {
  name: "undrain",
  alias: "resume",
  summary: "let load balancers use a drained replica again",
  description: "Let load balancers use a drained replica again.",
  outcome: "is in use again.",
});

interface DrainingFields extends Pick<CommandEntry, "name" | "alias" | "summary" | "description"> {
  outcome: string;
}

function drainingCommand(draining: boolean, { outcome, description, ...fields }: DrainingFields): CommandEntry {
  return serverCommand({
    ...fields,
    description: `${description} ${operatorNeeds}`,
    arguments: [["<replica>", "id, or its advertised URL"]],
    options: {
      ...(draining ? { yes: ["-y, --yes", "do not ask"] as const } : {}),
      json: ["--json", "print the replica as the API gives it"],
    },
    examples: [
      `headrace replicas ${fields.name} rep_01a1fa87-aec2-73b0-a423-ec670cceb9ca`,
      `headrace replicas ${fields.name} http://10.0.0.5:7545`,
    ],
    async run({ connect, ask, request, confirm, terminal }, which) {
      const connection = await connect();
      const raw = await ask((_, signal) => readReplicas(connection, signal));
      const all = raw.map((one) => understood(replica, one, connection, "replica"));
      const found = all.find(({ id, advertise_url: url }) => id === which || (url ?? undefined) === which);
      if (!found) throw new CliError(`There is no replica \`${printable(which)}\`. headrace replicas lists them.`);
      if (draining && !all.some((one) => one.id !== found.id && !one.draining)) {
        await confirm({
          question: `Drain the replica ${found.id}`,
          consequence: `No other replica is ready, so load balancers have nowhere to send requests until \`headrace replicas undrain ${found.id}\`.`,
          canBeUndone: true,
        });
      }
      const answer = await request(`/admin/replicas/${encodeURIComponent(found.id)}`, {
        method: "PATCH",
        body: { draining },
      });
      return { json: answer, show: () => terminal.print(`${found.id} ${outcome}`) };
    },
  });
}

export const replicasCommand = command({
  name: "replicas",
  summary: "list the server processes of the gateway, drain one before work on it",
  description: `Manage the server processes that share a database. ${operatorNeeds}`,
  examples: [
    "headrace replicas                                 list them",
    "headrace replicas drain http://10.0.0.5:7545      before work on its machine",
    "headrace replicas undrain http://10.0.0.5:7545",
  ],
  commands: [listCommand, drainCommand, undrainCommand],
});

async function readReplicas(connection: Connection, signal: AbortSignal): Promise<readonly unknown[]> {
  const answer = await requestJson(connection, "/admin/system", signal);
  return understood(system, answer, connection, "state of a server").replicas;
}
