// `headrace doctor`: checks everything that a server needs, and explains each fault and its remedy.
import packageJson from "../../../package.json" with { type: "json" };
import { connectDirectly, serveFlags } from "../../config/config.ts";
import type { GroupReport } from "../../doctor/finding.ts";
import { command, type OptionValues } from "../command.ts";
import { type ConnectionOptions, findConnection, givenBaseUrl } from "../login/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError, interruptible, printable } from "../terminal/terminal.ts";
import { failedNames, findingsAsJson, groupLines, summaryLine, WaitingLine } from "./doctor-view.ts";

const help = `\
Examples:
  headrace doctor                                   what is wrong here
  headrace doctor --config /etc/headrace/headrace.yaml --data-dir /var/lib/headrace
  headrace doctor --json | jq '.checks[] | select(.status != "ok")'
  headrace doctor --clients                         does it answer as the openai SDKs expect?
  headrace doctor --clients --model gpt-oss --base-url https://ai.example.com/v1

It works whether the server runs or not, changes nothing and shows no secret. Run it as
root or as the server's user: it takes the flags and variables of the running server.
Of a server elsewhere, which --base-url or HEADRACE_BASE_URL names, it can see only
whether it answers; its own machine is where to run this.
With --clients it asks the running server some thirty small requests with your key, about
a thousand tokens in all.

Exit code 1 when something fails; warnings alone are 0.`;

const doctorOptions = {
  json: ["--json", "print one JSON object"],
  clients: ["--clients", "test the running server with requests as the openai SDKs send them, instead"],
  baseUrl: ["--base-url <url>", "base URL of the server, including /v1 (default: HEADRACE_BASE_URL)"],
  apiKeyStdin: ["--api-key-stdin", "with --clients: read the API key from standard input"],
} as const;

/** The options of `serve` as doctor accepts them. A repeated option counts once. */
const ofServe = Object.fromEntries(
  serveFlags().flatMap(({ syntax, description }) =>
    // `--model` has another meaning in doctor.
    syntax.startsWith("--model ") ? [] : [[syntax, [syntax, description] as const]],
  ),
);

const modelOption = {
  model: [
    "--model <name>",
    "with --clients: the model to ask; else a GGUF file, as of serve",
    (value: string, all: string[] = []) => [...all, value],
  ],
} as const;

type DoctorFlags = OptionValues<typeof doctorOptions & typeof modelOption> & ConnectionOptions;

export const doctorCommand = command({
  name: "doctor",
  summary: "show what is wrong with this installation, and how to fix it",
  description: "Check everything that a server needs. Show what is wrong and how to fix it.",
  options: { ...doctorOptions, ...ofServe, ...modelOption },
  help: [help],
  run: ({ context, options }) => {
    const flags = options as DoctorFlags;
    return flags.clients ? clients(context, flags) : doctor(context, flags);
  },
});

async function doctor(context: CliContext, flags: DoctorFlags): Promise<void> {
  connectDirectly();
  const { terminal, env } = context;
  const startedMs = performance.now();
  // Loaded only here, so that a long-running server does not keep the code in memory.
  const [{ findSubject }, { diagnose }] = await Promise.all([
    import("../../doctor/subject.ts"),
    import("../../doctor/diagnose.ts"),
  ]);
  const { json, clients: _, baseUrl: __, apiKeyStdin: ___, ...ofServe } = flags;
  const namedUrl = givenBaseUrl(flags, env);
  const subject = await findSubject({ flags: ofServe as Record<string, unknown>, env, namedUrl });
  const waiting = new WaitingLine(terminal);
  if (!json) printHead(context, `data directory ${printable(subject.dataDir ?? "unknown")}`);
  try {
    const reports = await interruptible((signal) =>
      diagnose(subject, {
        signal,
        onGroup: (report) => !json && printGroup(context, waiting, report),
        onWaiting: (names) => waiting.show(names),
      }),
    );
    waiting.end();
    conclude(context, reports, startedMs, json && { data_dir: subject.dataDir ?? null });
  } finally {
    waiting.end();
    await subject.close();
  }
}

async function clients(context: CliContext, flags: DoctorFlags): Promise<void> {
  const { terminal } = context;
  const startedMs = performance.now();
  const connection = await findConnection(context, flags);
  const { testClients } = await import("../../doctor/clients/test-clients.ts");
  const { baseUrl, apiKey, login } = connection;
  const waiting = new WaitingLine(terminal);
  if (!flags.json) printHead(context, `client test of ${printable(baseUrl)}`);
  try {
    const { model, reports, requests, tokens } = await interruptible((signal) =>
      testClients({
        ...{ baseUrl, apiKey, signal },
        isKey: login === undefined,
        model: flags.model?.at(-1),
        onGroup: (report) => !flags.json && printGroup(context, waiting, report),
        onWaiting: (names) => waiting.show(names),
      }),
    );
    waiting.end();
    if (!flags.json)
      terminal.print(`Asked ${printable(model ?? "no model")} in ${requests} requests, ${tokens} tokens.`);
    conclude(context, reports, startedMs, flags.json && { base_url: baseUrl, model: model ?? null, requests, tokens });
  } finally {
    waiting.end();
  }
}

function printHead({ terminal }: CliContext, what: string): void {
  terminal.print(`${terminal.out.bold(`Headrace ${packageJson.version}`)}, ${what}\n`);
}

function printGroup({ terminal }: CliContext, waiting: WaitingLine, report: GroupReport): void {
  waiting.clear();
  terminal.print(`${groupLines(report, terminal).join("\n")}\n`);
}

function conclude(
  { terminal }: CliContext,
  reports: readonly GroupReport[],
  startedMs: number,
  json: Record<string, unknown> | false | undefined,
): void {
  if (json) {
    const { ok, ...rest } = findingsAsJson(reports);
    terminal.print(JSON.stringify({ ok, version: packageJson.version, ...json, ...rest }, undefined, 2));
  } else {
    terminal.print(summaryLine(reports, (performance.now() - startedMs) / 1000));
  }
  const failed = failedNames(reports);
  if (failed.length > 0)
    throw new CliError(`${failed.length === 1 ? "This fails" : "These fail"}: ${failed.join(", ")}.`);
}
