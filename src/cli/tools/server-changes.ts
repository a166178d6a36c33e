// `headrace tools add`, `set` and `remove`: operators' changes to MCP servers.
import { type Outcome, refuseNoChange } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { CliError, exitCodes, printable } from "../terminal/terminal.ts";
import { printServer, serverArgument, serverPath, serversPath, understoodServer } from "./server-records.ts";
import { sampleHeader, secretsHelp, serverFields, serverSettings } from "./server-settings.ts";

const json = ["--json", "print the server as the API gives it"] as const;

export const addCommand = serverCommand({
  name: "add",
  summary: "add an MCP server",
  description: `Add an MCP server at an address, or at a node. ${operatorNeeds}`,
  arguments: [["<name>", "prefix for its tools: lower-case letters, digits and hyphens"]],
  options: { ...serverSettings, json },
  examples: [
    "headrace tools add weather --url https://tools.example.com/mcp",
    `headrace tools add github --url https://mcp.example.com/mcp --header ${sampleHeader}`,
    "headrace tools add crm --url https://crm.example.com/mcp --oauth",
    "headrace tools add files --node studio/files --tools 'read_*,list_*' --approval each",
  ],
  help: [secretsHelp, "Only headrace.yaml can start programs on the server's machine."],
  async run(call, name) {
    refuseSecret(name);
    const { url, node } = call.options;
    if ((url === undefined) === (node === undefined)) {
      throw new CliError(
        "Say where the server is: either --url https://tools.example.com/mcp or --node NODE/SERVER.",
        exitCodes.usage,
      );
    }
    const body = { name, ...(await serverFields(call.options, call)) };
    const outcome = await outcomeOf(call, await call.request(serversPath, { method: "POST", body }));
    const show = () => {
      outcome.show();
      call.terminal.note(call.terminal.err.dim(`Test it with: headrace tools test ${printable(name)}`));
    };
    return { ...outcome, show };
  },
});

export const setCommand = serverCommand({
  name: "set",
  summary: "change an MCP server",
  description: `Change an MCP server. Options that you leave out stay. Servers in headrace.yaml are changed there only. ${operatorNeeds}`,
  arguments: [serverArgument],
  options: { ...serverSettings, json },
  examples: [
    "headrace tools set weather --tools 'forecast,alerts' --timeout 2m",
    "headrace tools set weather --accounts all --price-per-call 0.002",
    "headrace tools set github --header 'authorization: Bearer -' < token.txt",
    "headrace tools set github --disabled",
  ],
  help: [secretsHelp],
  async run(call, name) {
    refuseSecret(name);
    const body = await serverFields(call.options, call);
    refuseNoChange(body, "--timeout 2m");
    return outcomeOf(call, await call.request(serverPath(name), { method: "PATCH", body }));
  },
});

export const removeCommand = serverCommand({
  name: "remove",
  summary: "remove an MCP server that was added",
  description: `Remove an MCP server. ${operatorNeeds}`,
  arguments: [serverArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace tools remove weather", "headrace tools remove weather --yes"],
  async run({ connect, request, confirm, terminal }, name) {
    refuseSecret(name);
    const server = understoodServer(await request(serverPath(name)), await connect());
    await confirm({
      question: `Remove the MCP server ${name}`,
      consequence: `What was approved of it goes with it${server.credentials === "person" ? ", and so do the accounts that people connected there" : ""}.`,
    });
    const answer = await request(serverPath(name), { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`The MCP server ${printable(name)} is removed.`) };
  },
});

async function outcomeOf({ connect, terminal }: ServerCall<unknown>, answer: unknown): Promise<Outcome> {
  const connection = await connect();
  return { json: answer, show: () => printServer(terminal, understoodServer(answer, connection)) };
}
