// Describes a command as data: its name, arguments, help and action. Registers it with Commander.
import { Argument, type Command, Option } from "commander";
import { nearest } from "../base/text/nearest.ts";
import type { CliContext } from "./terminal/context.ts";
import { type Confirmation, confirm } from "./terminal/input.ts";
import { CliError, exitCodes, formatTable, printable, type Terminal, withoutColumns } from "./terminal/terminal.ts";

/**
 * Parses the value of an option or argument, or throws an InvalidArgumentError. `before` is the earlier value of an
 * option that may be given several times.
 */
type Parse = (text: string, before: never) => unknown;

/** An option: its flags, its description, a parser or the allowed words, and the default value. */
type OptionTuple = readonly [
  flags: string,
  description: string,
  values?: Parse | readonly string[],
  fallback?: unknown,
];
/**
 * Options by the name that Commander gives the value: `baseUrl` for `--base-url`. Commander's own Option is for rare
 * cases.
 */
export type OptionEntries = Readonly<Record<string, OptionTuple | Option>>;

/**
 * An argument: its name, as `<one>`, `[optional]` or `[several...]`, its description, and a parser or the allowed
 * words.
 */
export type ArgumentEntry = readonly [name: string, description: string, values?: Parse | readonly string[]];

type Parsed<Entry, Otherwise> = Entry extends readonly [string, string, readonly (infer Word)[], ...unknown[]]
  ? Word
  : Entry extends readonly [string, string, (text: string, before: never) => infer Value, ...unknown[]]
    ? Value
    : Otherwise;
type OptionValue<Entry> = Parsed<
  Entry,
  Entry extends readonly [`${string}<${string}`, ...unknown[]] ? string : boolean
>;
type ArgumentValue<Entry extends ArgumentEntry> = Parsed<
  Entry,
  Entry[0] extends `${string}...${string}` ? string[] : Entry[0] extends `[${string}` ? string | undefined : string
>;

/** The values of options by name. A value is undefined if its option was not given. */
export type OptionValues<Options> = {
  [Name in keyof Options as Options[Name] extends { length: 4 } ? Name : never]: OptionValue<Options[Name]>;
} & {
  [Name in keyof Options as Options[Name] extends { length: 4 } ? never : Name]?: OptionValue<Options[Name]>;
};
export type ArgumentValues<Arguments extends readonly ArgumentEntry[]> = {
  -readonly [At in keyof Arguments]: ArgumentValue<Arguments[At]>;
};

/** The call of a command: its options, arguments and context. */
export interface Call<Values> {
  context: CliContext;
  terminal: Terminal;
  options: Values;
  /** Unix time in seconds. */
  nowSeconds(): number;
  /** The program with all commands. */
  program: Command;
  /** Asks the person to confirm. Resolves if the person agrees or `--yes` was given. */
  confirm(confirmation: Omit<Confirmation, "yes">): Promise<void>;
}

/** The result of a command. `json` is printed with `--json`; `show` prints the result for a person. */
export interface Outcome {
  json: unknown;
  show(): void | Promise<void>;
  /** Runs after the result was printed, in either form. */
  after?: (() => void) | undefined;
  /** The message of a partial failure, when there is also a result. Printed last, with exit code 1. */
  failure?: string | undefined;
  /** The exit code of a failure. Default: 1. */
  exitCode?: number;
}

/** Undefined if the command has printed everything itself. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return gives nothing, too.
export type MaybeOutcome = Outcome | void;

/** The description of a command as data. */
export interface CommandFields<Options, Arguments extends readonly ArgumentEntry[]> {
  name: string;
  /** A second name of the command. */
  alias?: string;
  /** Shown in the list of commands instead of the description. */
  summary?: string;
  description: string;
  /** Runs if no sibling command is named. */
  isDefault?: boolean;
  arguments?: Arguments;
  options?: Options;
  /** Shown under the options, one per line. */
  examples?: readonly string[];
  /** Paragraphs under the examples. A function returns a paragraph that depends on the machine. */
  help?: readonly (string | ((context: CliContext) => string))[];
  /** True if the command keeps running after its output pipe is closed, as a server does. */
  keepsRunning?: boolean;
  /** The subcommands. */
  commands?: readonly CommandEntry[];
}

/** A command's description as `command` returns it, for any options and arguments. */
export interface CommandEntry extends CommandFields<OptionEntries, readonly ArgumentEntry[]> {
  run?(call: Call<never>, ...args: never[]): Promise<Outcome | undefined> | undefined;
}

/** Returns the description of a command. The argument types of `run` follow from its options and arguments. */
export function command<
  const Options extends OptionEntries = Record<never, never>,
  const Arguments extends readonly ArgumentEntry[] = [],
>(
  entry: CommandFields<Options, Arguments> & {
    run?(call: Call<OptionValues<Options>>, ...args: ArgumentValues<Arguments>): Promise<MaybeOutcome>;
  },
): CommandEntry {
  return entry as CommandEntry;
}

/** The `--data-dir` option of commands that work on the data directory of a server. */
export const dataDirOption = {
  dataDir: ["--data-dir <path>", "data directory (default: as headrace serve)"],
} as const;

/** Throws a CliError if `body` is empty, because no option was given. `such` is an example of an option. */
export function refuseNoChange(body: Readonly<Record<string, unknown>>, such: string): void {
  if (Object.keys(body).length > 0) return;
  throw new CliError(`Nothing to change: give at least one option, such as ${such}. See --help.`, exitCodes.usage);
}

/** A column of a table: its heading, and the function that returns its cell for a row. */
export type Column<Row> = readonly [name: string, cell: (row: Row) => string];

/**
 * Prints one line per row. `figures` names the right-aligned columns. On a narrow terminal, the columns in
 * `dispensable` are left out, in the order of the list.
 */
export function printRows<Row>(
  { out, print }: Terminal,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  figures: readonly string[] = [],
  dispensable: readonly string[] = [],
): void {
  const all = [columns.map(([name]) => name), ...rows.map((row) => columns.map(([, cell]) => cell(row)))];
  const [names = [], ...cells] = withoutColumns(all, dispensable, out.columns);
  const numeric = figures.map((name) => names.indexOf(name)).filter((column) => column >= 0);
  print(formatTable(names, cells, out, numeric));
}

/** Registers the command and its subcommands with Commander. */
export function register(parent: Command, context: CliContext, entry: CommandEntry): void {
  const made = parent.command(entry.name, { isDefault: entry.isDefault ?? false }).description(entry.description);
  if (entry.alias !== undefined) made.alias(entry.alias);
  if (entry.summary !== undefined) made.summary(entry.summary);
  for (const [name, description, values] of entry.arguments ?? []) {
    made.addArgument(reading(new Argument(name, description), values));
  }
  for (const option of Object.values(entry.options ?? {})) made.addOption(optionOf(option));
  const { examples = [], help = [] } = entry;
  const paragraphs = [
    ...(examples.length > 0 ? [["Examples:", ...examples].join("\n  ")] : []),
    ...help.map((paragraph) => (typeof paragraph === "string" ? paragraph : paragraph(context))),
  ];
  if (paragraphs.length > 0) made.addHelpText("after", `\n${paragraphs.join("\n\n")}`);
  for (const below of entry.commands ?? []) register(made, context, below);
  // Words that name no subcommand go to the default command, whose action refuses them.
  if (entry.isDefault && parent.parent) made.allowExcessArguments();
  if (entry.run) made.action(() => run(made, context, entry));
}

/** Throws a CliError if a default command was called with a word that names no command of its parent. */
function refuseExcess({ args, registeredArguments, parent }: Command): void {
  const word = args[registeredArguments.length];
  if (word === undefined || !parent?.parent || registeredArguments.at(-1)?.variadic) return;
  const meant = nearest(
    word,
    parent.commands.flatMap((command) => [command.name(), ...command.aliases()]),
  );
  const group = `headrace ${parent.name()}`;
  const hint = meant ? `Did you mean \`${group} ${meant}\`?` : `\`${group} --help\` lists the commands.`;
  throw new CliError(`There is no command \`${group} ${printable(word)}\`. ${hint}`, exitCodes.usage);
}

function optionOf(entry: OptionTuple | Option): Option {
  if (entry instanceof Option) return entry;
  const [flags, description, values, fallback] = entry;
  const option = reading(new Option(flags, description), values);
  return fallback === undefined ? option : option.default(fallback);
}

function reading<Taker extends Argument | Option>(taker: Taker, values: Parse | readonly string[] | undefined): Taker {
  if (typeof values === "function") taker.argParser(values as (text: string, before: unknown) => unknown);
  else if (values) taker.choices(values);
  return taker;
}

async function run(made: Command, context: CliContext, entry: CommandEntry): Promise<void> {
  if (!entry.keepsRunning) context.begin();
  if (entry.isDefault) refuseExcess(made);
  const { terminal, input } = context;
  // If parent and subcommand have the same option, Commander gives its value to the parent.
  const options: { json?: boolean; yes?: boolean } = made.optsWithGlobals();
  let program = made;
  while (program.parent) program = program.parent;
  const call: Call<typeof options> = {
    ...{ context, terminal, options, program },
    nowSeconds: () => Math.floor(context.nowMs() / 1000),
    confirm: (confirmation) => confirm(input, { ...confirmation, yes: options.yes }),
  };
  const outcome = await entry.run?.(call as Call<never>, ...(made.processedArgs as never[]));
  if (!outcome) return;
  if (options.json) terminal.print(JSON.stringify(outcome.json, undefined, 2));
  else await outcome.show();
  outcome.after?.();
  if (outcome.failure !== undefined) throw new CliError(outcome.failure, outcome.exitCode);
}
