// `headrace upstreams`: lists, tests, drains, adds, changes and removes model servers. For operators.
import { environments } from "../../domain/api-key.ts";
import { upstreamApis } from "../../domain/models/upstream-speech.ts";
import { type UpstreamWire, upstreamShape, upstreamTestShape } from "../../wire/upstreams.ts";
import {
  type Column,
  type CommandEntry,
  command,
  type OptionValues,
  type Outcome,
  printRows,
  refuseNoChange,
} from "../command.ts";
import { parseCount, parseSeconds } from "../keys/key-settings.ts";
import { requestWholeList, understood } from "../login/api-request.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { orNone, parseEnvironments } from "../models/model-settings.ts";
import { formatCount } from "../terminal/figures.ts";
import { formatFacts, printable, type Terminal } from "../terminal/terminal.ts";
import { type SecretSource, secretReader, secretsHelp } from "../tools/server-settings.ts";

const nameArgument = ["<upstream>", "name, as headrace upstreams lists it"] as const;
const json = ["--json", "print the upstream as the API gives it"] as const;
const upstreamPath = (name: string) => `/admin/upstreams/${encodeURIComponent(name)}`;

const stateTexts: Record<UpstreamWire["state"], string> = {
  ok: "ok",
  unreachable: "unreachable",
  draining: "drained",
  starting: "not asked yet",
};

function stateOf({ state, health, attempts }: UpstreamWire): string {
  if (state === "draining") return stateTexts.draining;
  if (attempts?.failing) return "failing";
  return state === "ok" && health !== "ok" ? "resting after failures" : stateTexts[state];
}

/** Returns the last failure, as the gateway's API describes it. Undefined if nothing fails. */
function faultOf({ error, attempts }: UpstreamWire): string | undefined {
  return attempts?.failing || (attempts?.failing_models.length ?? 0) > 0 ? attempts?.summary : (error ?? undefined);
}

const columns: Column<UpstreamWire>[] = [
  ["NAME", ({ name }) => name],
  ["STATE", stateOf],
  ["MODELS", ({ models }) => formatCount(models)],
  ["RUNNING", ({ running }) => formatCount(running)],
  ["WAITING", ({ waiting }) => formatCount(waiting)],
  ["SLOTS", ({ concurrency }) => formatCount(concurrency)],
  ["SOURCE", ({ source }) => source],
  ["URL", ({ url }) => url ?? "-"],
];
const figures = ["MODELS", "RUNNING", "WAITING", "SLOTS"];

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the model servers and their state (the default)",
  description: `List the model servers with their state and load. ${operatorNeeds}`,
  options: { json: ["--json", "print the list as the API gives it"] },
  examples: ["headrace upstreams", "headrace upstreams --json"],
  async run({ connect, ask, terminal }) {
    const connection = await connect();
    const raw = await ask((_, signal) => requestWholeList(connection, "/admin/upstreams", "list of upstreams", signal));
    const show = () => {
      const upstreams = raw.map((entry) => understood(upstreamShape, entry, connection, "list of upstreams"));
      if (upstreams.length === 0) return terminal.note("There are no upstreams. See headrace upstreams add --help.");
      printRows(terminal, upstreams, columns, figures, ["SLOTS", "SOURCE", "URL", "WAITING"]);
      for (const upstream of upstreams) {
        const fault = faultOf(upstream);
        if (fault !== undefined) terminal.print(printable(`${upstream.name}: ${fault}`));
      }
    };
    return { json: raw, show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show one model server",
  description: `Show one model server: state, load and settings. ${operatorNeeds}`,
  arguments: [nameArgument],
  options: { json },
  examples: ["headrace upstreams show vllm"],
  run: async (call, name) => outcomeOf(call, await call.request(upstreamPath(name)), printUpstream),
});

const settings = {
  apiKey: ["--api-key <key>", `API key for the server: '\${NAME}' for a variable, - for standard input, or none`],
  api: ["--api <api>", "API that the server speaks (default: openai)", upstreamApis],
  maxConcurrency: [
    "--max-concurrency <number>",
    "maximum number of concurrent requests; none: measured automatically",
    orNone(parseCount),
  ],
  environments: [
    "--environments <names>",
    `environments that may use its models: ${environments.join(", ")}`,
    parseEnvironments,
  ],
  timeout: ["--timeout <seconds>", "how long to wait for the first byte of an answer", parseSeconds],
  discover: ["--discover", "serve the models that it lists"],
  noDiscover: ["--no-discover", "serve only declared models"],
  local: ["--local", "it sends nothing on: keys with never_leaves may use it"],
  noLocal: ["--no-local", "not a local server"],
} as const;

const addCommand = serverCommand({
  name: "add",
  summary: "add a model server",
  description: `Add a model server. It is asked for its models at once, and added in either case. ${operatorNeeds}`,
  arguments: [
    ["<name>", "name for logs and records"],
    ["<url>", "base URL, usually ending in /v1"],
  ],
  options: { ...settings, json },
  examples: [
    "headrace upstreams add vllm http://10.0.0.5:8000/v1",
    `headrace upstreams add openai https://api.openai.com/v1 --api-key '\${OPENAI_API_KEY}'`,
  ],
  help: [secretsHelp],
  async run(call, name, url) {
    const body = { name, url, ...(await upstreamFields(call.options, call)) };
    return outcomeOf(call, await call.request("/admin/upstreams", { method: "POST", body }), printUpstream);
  },
});

const setCommand = serverCommand({
  name: "set",
  summary: "change a model server that was added here",
  description: `Change a model server. Options that you leave out stay. Servers of headrace.yaml are changed there. ${operatorNeeds}`,
  arguments: [nameArgument],
  options: { url: ["--url <url>", "another base URL"], ...settings, json },
  examples: ["headrace upstreams set vllm --max-concurrency 32"],
  help: [secretsHelp],
  async run(call, name) {
    const { url } = call.options;
    const body = { ...(url === undefined ? {} : { url }), ...(await upstreamFields(call.options, call)) };
    refuseNoChange(body, "--max-concurrency 32");
    return outcomeOf(call, await call.request(upstreamPath(name), { method: "PATCH", body }), printUpstream);
  },
});

const removeCommand = serverCommand({
  name: "remove",
  summary: "remove a model server that was added here",
  description: `Remove a model server. Its running requests end as usual. ${operatorNeeds}`,
  arguments: [nameArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace upstreams remove vllm"],
  async run({ request, confirm, terminal }, name) {
    await confirm({
      question: `Remove the upstream ${name}`,
      consequence: "Its models are no longer served, unless another server has them. Its API key is deleted.",
    });
    const answer = await request(upstreamPath(name), { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`${printable(name)} is removed.`) };
  },
});

const testCommand = serverCommand({
  name: "test",
  summary: "ask a model server for its models, and show the result",
  description: `Ask a model server for its models now, without a change. ${operatorNeeds}`,
  arguments: [nameArgument],
  options: { json: ["--json", "print the result as the API gives it"] },
  examples: ["headrace upstreams test vllm"],
  help: ["Exit code 1 if the server does not answer as it should."],
  async run({ connect, request, terminal }, name) {
    const answer = await request("/admin/upstream-tests", { method: "POST", body: { name } });
    const { ok, models, apis, duration_ms: ms, error } = understood(upstreamTestShape, answer, await connect(), "test");
    const show = () => {
      if (ok) terminal.print(`${printable(name)} answers in ${ms} ms: ${formatCount(models.length)} models.`);
      if (apis.length > 0) terminal.print(`It speaks ${apis.join(", ")}.`);
    };
    return {
      json: answer,
      show,
      failure: ok ? undefined : `${printable(name)} does not work: ${error ?? "no reason"}`,
    };
  },
});

const drainCommand = drainingCommand(true, {
  name: "drain",
  alias: "suspend",
  summary: "stop sending new requests to a model server",
  description: "Stop sending new requests to a model server. Running requests finish. A restart does not end this.",
  outcome: ({ running }) =>
    `gets nothing new. ${running === 0 ? "Nothing runs there." : `${running} requests still run.`}`,
});

const undrainCommand = drainingCommand(false, {
  name: "undrain",
  alias: "resume",
  summary: "send requests to a drained model server again",
  description: "Send requests to a drained model server again.",
  outcome: () => "gets requests again.",
});

interface DrainingFields extends Pick<CommandEntry, "name" | "alias" | "summary" | "description"> {
  outcome(upstream: UpstreamWire): string;
}

function drainingCommand(draining: boolean, { outcome, description, ...fields }: DrainingFields): CommandEntry {
  return serverCommand({
    ...fields,
    description: `${description} ${operatorNeeds}`,
    arguments: [nameArgument],
    options: { json },
    examples: [`headrace upstreams ${fields.name} vllm`],
    async run(call, name) {
      const answer = await call.request(upstreamPath(name), { method: "PATCH", body: { draining } });
      return outcomeOf(call, answer, ({ print }, upstream) =>
        print(`${printable(upstream.name)} ${outcome(upstream)}`),
      );
    },
  });
}

export const upstreamsCommand = command({
  name: "upstreams",
  summary: "list, test, drain, add and remove model servers",
  description: `Manage the model servers behind the gateway. ${operatorNeeds}`,
  examples: [
    "headrace upstreams                                 list them, with their state",
    "headrace upstreams test vllm",
    "headrace upstreams drain vllm                      before work on its machine",
    "headrace upstreams undrain vllm",
    "headrace upstreams add vllm http://10.0.0.5:8000/v1",
  ],
  commands: [
    ...[listCommand, showCommand, testCommand, drainCommand, undrainCommand],
    ...[addCommand, setCommand, removeCommand],
  ],
});

async function upstreamFields(
  options: OptionValues<typeof settings>,
  source: SecretSource,
): Promise<Record<string, unknown>> {
  const { apiKey } = options;
  const key = apiKey === undefined || apiKey === "none" ? apiKey : await secretReader(source)("--api-key", apiKey);
  const fields = {
    api_key: key,
    api: options.api,
    max_concurrency: options.maxConcurrency,
    environments: options.environments,
    timeout_seconds: options.timeout,
    discover: options.discover,
    local: options.local,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, value === "none" ? null : value]));
}

async function outcomeOf(
  { connect, terminal }: ServerCall<unknown>,
  answer: unknown,
  print: (terminal: Terminal, upstream: UpstreamWire) => void,
): Promise<Outcome> {
  const connection = await connect();
  return { json: answer, show: () => print(terminal, understood(upstreamShape, answer, connection, "upstream")) };
}

function printUpstream({ print, out }: Terminal, upstream: UpstreamWire): void {
  const { running, waiting, concurrency } = upstream;
  const fault = faultOf(upstream);
  const colour = stateOf(upstream) === "ok" ? out.green : out.yellow;
  print(`${out.bold(printable(upstream.name))}  ${colour(stateOf(upstream))}\n`);
  const facts: [string, string][] = [
    ["URL", upstream.url ?? "-"],
    ["Source", upstream.source === "database" ? "added here" : upstream.source],
    ...(fault === undefined ? [] : [["Fault", fault] as [string, string]]),
    ["Models", formatCount(upstream.models)],
    ["Requests", `${formatCount(running)} running, ${formatCount(waiting)} waiting, ${formatCount(concurrency)} slots`],
    ["API", `${upstream.apis.join(", ") || upstream.api}; ${upstream.has_api_key ? "with an API key" : "no API key"}`],
    ["Environments", upstream.environments.join(", ")],
    ["Local", upstream.local ? "yes" : "no"],
  ];
  print(formatFacts(facts, out));
}
