// `headrace tools changes`, `approve` and `refuse`: shows new or changed tool definitions of an MCP server and decides
// which are offered.
import { type DefinitionWire, definitionShape } from "../../wire/tools/mcp-servers.ts";
import type { Outcome } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { ApiError, requestJson, requestList, requestWholeList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { CliError, exitCodes, printable, type Terminal } from "../terminal/terminal.ts";
import { changedLines, unhidden } from "./definition-text.ts";
import { serverArgument, serverPath, serversPath, understoodServer } from "./server-records.ts";

type Decision = "approved" | "refused";

/**
 * Returns the tool definitions of a server as the API sent them and parsed: all, or only those waiting for approval.
 */
export async function readDefinitions(
  connection: Connection,
  server: string,
  which: "all" | "waiting",
  signal: AbortSignal,
): Promise<{ raw: unknown[]; definitions: DefinitionWire[] }> {
  const query = which === "waiting" ? "?waiting=true" : "";
  const raw = await requestList(connection, `${serverPath(server)}/definitions${query}`, signal);
  return { raw, definitions: raw.map((one) => understood(definitionShape, one, connection, "list of definitions")) };
}

export const changesCommand = serverCommand({
  name: "changes",
  summary: "show changes that wait for approval",
  description: `Show new and changed descriptions of servers, tools and prompts. ${operatorNeeds}`,
  arguments: [["[name]", "name of a server; without one, those of all"]],
  options: { json: ["--json", "print the definitions as the API gives them"] },
  examples: ["headrace tools changes", "headrace tools changes weather"],
  help: [whatIsSeen()],
  async run({ ask, terminal }, name) {
    if (name !== undefined) refuseSecret(name);
    const found = await ask(async (connection, signal) => {
      const servers = name === undefined ? await serversWithChanges(connection, signal) : [name];
      return Promise.all(servers.map((server) => readDefinitions(connection, server, "waiting", signal)));
    });
    const waiting = found.flatMap(({ definitions }) => definitions);
    const show = () => {
      if (waiting.length === 0) return terminal.note("Nothing waits for approval.");
      for (const one of waiting) printDefinition(terminal, one);
      for (const server of new Set(waiting.map(({ server }) => server))) {
        const shown = printable(server);
        terminal.note(
          terminal.err.dim(`Decide with: headrace tools approve ${shown} TOOL, or headrace tools refuse ${shown} TOOL`),
        );
      }
    };
    return { json: found.flatMap(({ raw }) => raw), show };
  },
});

export const approveCommand = decisionCommand("approved", {
  name: "approve",
  summary: "approve tools as the server describes them now",
  description: `Approve tools and prompts of a server as they are shown. ${operatorNeeds}`,
  examples: ["headrace tools approve weather forecast", "headrace tools approve weather --all --yes"],
});

export const refuseCommand = decisionCommand("refused", {
  name: "refuse",
  summary: "refuse tools of a server",
  description: `Refuse tools and prompts of a server as they are shown, approved ones included: nobody may use them then. Of a server that is asked as each person, what waits is refused by itself; what is approved, with all other texts of it. ${operatorNeeds}`,
  examples: ["headrace tools refuse weather forecast", "headrace tools refuse weather --all --yes"],
});

function decisionCommand(
  decision: Decision,
  said: { name: string; summary: string; description: string; examples: readonly string[] },
) {
  return serverCommand({
    ...said,
    arguments: [serverArgument, ["[tools...]", "names of tools or prompts, as the server has them; or instructions"]],
    options: {
      all: ["--all", "everything that waits for approval"],
      yes: ["-y, --yes", "do not ask"],
      json: ["--json", "print the decided definitions as the API gives them"],
    },
    help: [whatIsSeen(), "If a description changes before you answer, it is not decided and waits for you again."],
    async run(call, server, names) {
      for (const argument of [server, ...names]) refuseSecret(argument);
      if (call.options.all ? names.length > 0 : names.length === 0) {
        throw new CliError("Name the tools, or give --all for everything that waits.", exitCodes.usage);
      }
      const which = call.options.all ? "waiting" : "all";
      const { definitions } = await call.ask((connection, signal) =>
        readDefinitions(connection, server, which, signal),
      );
      const chosen = call.options.all ? definitions : named(definitions, server, names);
      return decide(call, chosen, decision);
    },
  });
}

function named(definitions: readonly DefinitionWire[], server: string, names: readonly string[]): DefinitionWire[] {
  const unknown = names.filter((name) => !definitions.some((one) => one.name === name));
  if (unknown.length === 0) return definitions.filter(({ name }) => names.includes(name));
  throw new CliError(
    `${server} was not seen to have ${unknown.join(", ")}. headrace tools show ${server} lists what it had when a client listed it last.`,
  );
}

async function decide(
  call: ServerCall<{ json?: boolean }>,
  chosen: readonly DefinitionWire[],
  decision: Decision,
): Promise<Outcome> {
  const { terminal, confirm, ask } = call;
  const open = chosen.filter(({ state }) => state !== decision);
  if (open.length === 0) {
    const what = chosen.length === 0 ? "Nothing waits for approval." : `All of that is ${decision} already.`;
    return { json: [], show: () => terminal.note(what) };
  }
  for (const one of open) printDefinition(terminal, one, terminal.note);
  const verb = decision === "approved" ? "Approve" : "Refuse";
  await confirm({ question: `${verb} ${countOf(open)} as it is shown`, canBeUndone: true });
  const decided: unknown[] = [];
  const failed: string[] = [];
  await ask(async (connection, signal) => {
    for (const { server, kind, name, digest } of open) {
      const body = { kind, name, digest, decision };
      try {
        decided.push(
          await requestJson(connection, `${serverPath(server)}/definitions`, signal, { method: "POST", body }),
        );
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        failed.push(`${name}: ${error.reason ?? error.message}`);
      }
    }
  });
  const show = () => {
    if (decided.length > 0) terminal.print(`${decided.length} ${decision}.`);
  };
  return { json: decided, show, failure: failed.length === 0 ? undefined : failed.join("\n") };
}

async function serversWithChanges(connection: Connection, signal: AbortSignal): Promise<string[]> {
  const servers = await requestWholeList(connection, serversPath, "list of MCP servers", signal);
  return servers
    .map((one) => understoodServer(one, connection))
    .filter(({ waiting }) => waiting > 0)
    .map(({ name }) => name);
}

const stateWords: Record<DefinitionWire["state"], string> = {
  approved: "approved",
  pending: "new",
  changed: "changed since it was approved",
  refused: "refused",
};

function printDefinition(terminal: Terminal, one: DefinitionWire, print = terminal.print): void {
  const style = print === terminal.print ? terminal.out : terminal.err;
  const { approved_others: others } = one;
  const beside = others === 0 ? "" : `; ${others} other ${others === 1 ? "text" : "texts"} of it approved`;
  const words = `${one.kind}, ${stateWords[one.state]}${beside}`;
  print(`${style.bold(unhidden(`${one.server}/${one.name}`))}  ${words}\n`);
  for (const line of changedLines(one, style)) print(line);
  print("");
}

function countOf(definitions: readonly DefinitionWire[]): string {
  const [only, ...others] = definitions;
  return only && others.length === 0 ? `${only.server}/${only.name}` : `${definitions.length} definitions`;
}

function whatIsSeen(): string {
  return `\
- marks the approved text, + the new one. Characters that a terminal hides but models read
are written as codes such as \\u{200b}.`;
}
