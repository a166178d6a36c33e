// `headrace config`: shows the configuration of a running server, compares it with the file, and checks a file.
import { z } from "zod";
import { ConfigError, loadConfig, type Problem, renderPlace } from "../../config/config.ts";
import { command, printRows } from "../command.ts";
import { understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { paragraph } from "../terminal/fitted-text.ts";
import { CliError, exitCodes, formatFacts, printable, printableText, type Terminal } from "../terminal/terminal.ts";

const text = z.string().nullish();
const configuration = z.object({
  file: text,
  last_reload: z
    .object({ at: z.number(), result: z.string(), error: text, needs_restart: z.array(z.string()) })
    .nullish(),
  settings: z.array(z.object({ name: z.string(), value: z.unknown(), source: z.string() })),
  sections: z.record(z.string(), z.unknown()),
  sections_in_file: z.array(z.string()),
  differences: z.array(
    z.object({ path: z.string(), in_effect: z.unknown(), in_file: z.unknown(), needs_restart: z.boolean() }),
  ),
  problems: z.array(z.string()),
});
type Configuration = z.infer<typeof configuration>;

const configurationPath = "/admin/configuration";

const showCommand = serverCommand({
  name: "show",
  isDefault: true,
  summary: "show the configuration in effect (the default)",
  description: `Show the configuration that a running server uses, with the source of each setting. ${operatorNeeds}`,
  options: {
    all: ["-a, --all", "include settings and sections that have their defaults"],
    json: ["--json", "print the configuration as the API gives it"],
  },
  examples: [
    "headrace config show",
    "headrace config show --all",
    "headrace config show --json | jq .sections.upstreams",
  ],
  help: [
    `Secrets are redacted. A value that comes from a variable is shown as \${NAME}. Each replica
has its own configuration: with --base-url you choose the replica.`,
  ],
  async run({ connect, request, options, terminal, nowSeconds }) {
    const connection = await connect();
    const answer = await request(configurationPath);
    const show = () => {
      const read = understood(configuration, answer, connection, "configuration");
      const settings = read.settings.filter(({ source }) => options.all || source !== "default");
      const facts = settings.map(({ name, value, source }) => [name, `${valueText(value)}  (${source})`] as const);
      if (facts.length > 0) terminal.print(`Settings\n${formatFacts(facts, terminal.out)}\n`);
      for (const [name, section] of Object.entries(read.sections)) {
        if (options.all || read.sections_in_file.includes(name))
          terminal.print(printableText(`${yamlLines(name, section).join("\n")}\n`));
      }
      printReload(terminal, read, nowSeconds());
    };
    return { json: answer, show };
  },
});

const diffCommand = serverCommand({
  name: "diff",
  summary: "compare the file on the server's disk with the configuration in effect",
  description: `Show settings whose value in the configuration file on the server's disk is not in use: they need a restart, or the file was refused. ${operatorNeeds}`,
  options: { json: ["--json", "print the differences as the API gives them"] },
  examples: ["headrace config diff"],
  help: ["Exit code 2 if there are differences or the file has errors, 0 if there are none."],
  async run({ connect, request, terminal, nowSeconds }) {
    const connection = await connect();
    const read = understood(configuration, await request(configurationPath), connection, "configuration");
    const { differences, problems, file, last_reload } = read;
    const show = () => {
      printReload(terminal, read, nowSeconds());
      if (differences.length === 0) {
        if (problems.length === 0) terminal.print("No differences.");
        return;
      }
      printRows(terminal, differences, [
        ["KEY", ({ path }) => path],
        ["IN EFFECT", ({ in_effect: value }) => valueText(value)],
        ["IN THE FILE", ({ in_file: value }) => valueText(value)],
        ["", ({ needs_restart: isLater }) => (isLater ? "needs a restart" : "")],
      ]);
    };
    const isDrift = differences.length > 0 || problems.length > 0;
    const after = () => {
      if (isDrift) throw new CliError("The file differs from the configuration in effect.", exitCodes.usage);
    };
    return { json: { file, last_reload, differences, problems }, show, after };
  },
});

const validateCommand = command({
  name: "validate",
  summary: "check a configuration file before you use it",
  description: "Check a configuration file with the variables of this shell, without a server.",
  arguments: [["[file]", "the file (default: as headrace serve)"]],
  options: { json: ["--json", "print one JSON object with all problems"] },
  examples: ["headrace config validate", "headrace config validate /etc/headrace/headrace.yaml"],
  help: ["Exit code 1 if the file has errors. headrace doctor also checks servers, databases and rights."],
  async run({ context, terminal }, file) {
    const flags = file === undefined ? {} : { config: file };
    try {
      const config = await loadConfig({ flags, env: context.env });
      const { found, path } = config.file;
      const counts = `${config.upstreams.length} upstreams, ${config.models.length} models, ${config.tiers.length} tiers`;
      const show = () => {
        terminal.print(
          found
            ? `${path} is valid: ${counts}.`
            : `${path} does not exist. The server would use defaults and variables.`,
        );
        for (const warning of config.warnings) terminal.note(`Warning: ${printable(warning)}.`);
      };
      return { json: { valid: true, file: path, problems: [], warnings: config.warnings }, show };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const { problems } = error;
      return {
        json: { valid: false, problems, warnings: [] },
        show: () => printProblems(terminal, problems),
        failure: `${problems.length === 1 ? "1 error" : `${problems.length} errors`} in the configuration.`,
      };
    }
  },
});

export const configCommand = command({
  name: "config",
  summary: "show the configuration in effect, compare and validate files",
  description: "Show the configuration of a running server, compare it with the file, and check a file before use.",
  examples: [
    "headrace config show                      what the server uses, and where each value comes from",
    "headrace config diff                      settings whose value in the file is not in use",
    "headrace config validate new.yaml         errors with line, column and remedy",
  ],
  commands: [showCommand, diffCommand, validateCommand],
});

function printReload(
  { print, note }: Terminal,
  { file, last_reload: reload, problems }: Configuration,
  nowSeconds: number,
) {
  const source = file == null ? "The server has no configuration file." : `File: ${printable(file)}`;
  if (!reload) print(`${source}${file == null ? "" : ", as it was read at the start"}`);
  else {
    const at = formatTimeAndRelative(reload.at, nowSeconds);
    print(
      `${source}\nLast reload: ${reload.result === "ok" ? "ok" : "REFUSED, the configuration before it stays"}, ${at}`,
    );
    if (reload.needs_restart.length > 0) print(`Needs a restart: ${reload.needs_restart.join(", ")}`);
  }
  for (const problem of problems) note(printableText(problem));
}

function printProblems({ print, out }: Terminal, problems: readonly Problem[]): void {
  for (const problem of problems) {
    const whole = `${renderPlace(problem)}${problem.message}. Fix: ${problem.fix}`;
    print(paragraph(printable(whole), out.columns, 2).join("\n  "));
  }
}

function valueText(value: unknown): string {
  if (value == null) return "-";
  return printable(typeof value === "string" ? value : JSON.stringify(value));
}

function isEmpty(section: unknown): boolean {
  return typeof section !== "object" || section === null || Object.keys(section).length === 0;
}

/** Renders a value as lines of YAML. Texts are quoted unless they are plain words. */
function yamlLines(name: string, value: unknown, indent = ""): string[] {
  const head = name === "-" ? `${indent}- ` : `${indent}${name}:`;
  if (isEmpty(value)) {
    const isPlain = typeof value === "string" && /^[a-zA-Z/$][^:#]*(:\/\/[^:#]*)?(:\d+\S*)?$/.test(value);
    return [`${head}${name === "-" ? "" : " "}${isPlain ? value : JSON.stringify(value ?? null)}`];
  }
  const isList = Array.isArray(value);
  const inner = Object.entries(value as object).flatMap(([key, entry]) =>
    yamlLines(isList ? "-" : key, entry, `${indent}  `),
  );
  if (name !== "-") return [head, ...inner];
  const [first = "", ...others] = inner;
  return [head + first.trimStart(), ...others];
}
