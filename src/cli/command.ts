// What a command is, as data: its name, what it takes, its help and what it does; and how Commander is told of it.
import { Argument, type Command, Option } from "commander";
import type { CliContext } from "./terminal/context.ts";
import { type Confirmation, confirm } from "./terminal/input.ts";
import { CliError, exitCodes, formatTable, type Terminal } from "./terminal/terminal.ts";

/**
 * Gives the value of a text, throwing an InvalidArgumentError for what is none. `before` is the value that the same
 * option gave already, where it may be given several times.
 */
type Parse = (text: string, before: never) => unknown;

/** The third is how a value is read, or the words that it may be; the fourth is the default. */
type OptionTuple = readonly [
  flags: string,
  description: string,
  values?: Parse | readonly string[],
  fallback?: unknown,
];
/** By the name that Commander gives the value: `baseUrl` for `--base-url`. Commander's own Option says what is rare. */
export type OptionEntries = Readonly<Record<string, OptionTuple | Option>>;

/** `<one>`, `[optional]` or `[several...]`. */
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

/** What is undefined was not given. */
export type OptionValues<Options> = {
  [Name in keyof Options as Options[Name] extends { length: 4 } ? Name : never]: OptionValue<Options[Name]>;
} & {
  [Name in keyof Options as Options[Name] extends { length: 4 } ? never : Name]?: OptionValue<Options[Name]>;
};
export type ArgumentValues<Arguments extends readonly ArgumentEntry[]> = {
  -readonly [At in keyof Arguments]: ArgumentValue<Arguments[At]>;
};

/** A command as it was called. */
export interface Call<Values> {
  context: CliContext;
  terminal: Terminal;
  options: Values;
  /** Seconds since the Unix epoch. */
  nowSeconds(): number;
  /** All commands, under the program's own name. */
  program: Command;
  /** Resolves when the person agrees, or `--yes` was given; see `confirm`. */
  confirm(confirmation: Omit<Confirmation, "yes">): Promise<void>;
}

/** What came of a command: as `--json` prints it, and for a person. */
export interface Outcome {
  json: unknown;
  show(): void | Promise<void>;
  /** Done once it was printed, in either way: what was made is shown first, whatever comes after. */
  after?: (() => void) | undefined;
  /** What has failed all the same: told last, and the exit code is 1. */
  failure?: string | undefined;
}

/** Nothing where the command has printed all by itself. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return gives nothing, too.
export type MaybeOutcome = Outcome | void;

/** Everything that is said of a command. */
export interface CommandFields<Options, Arguments extends readonly ArgumentEntry[]> {
  name: string;
  /** In the list of commands; else the description stands there. */
  summary?: string;
  description: string;
  /** It is meant where none beside it is named. */
  isDefault?: boolean;
  arguments?: Arguments;
  options?: Options;
  /** Shown under the options, each in a line. */
  examples?: readonly string[];
  /** Paragraphs under the examples; some tell of where this runs. */
  help?: readonly (string | ((context: CliContext) => string))[];
  /** Whether it outlives the reader of its output, as a server does. */
  keepsRunning?: boolean;
  /** Those below it. */
  commands?: readonly CommandEntry[];
}

/** What `command` makes of its fields: any of them, whatever it takes. */
export interface CommandEntry extends CommandFields<OptionEntries, readonly ArgumentEntry[]> {
  run?(call: Call<never>, ...args: never[]): Promise<Outcome | undefined> | undefined;
}

/** The entry of a command; the types of what `run` is given follow from its options and arguments. */
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

/** Where a command looks for files that a server of this machine uses as well. */
export const dataDirOption = {
  dataDir: ["--data-dir <path>", "data directory (default: as headrace serve)"],
} as const;

/** Throws a CliError where no option says what to change. `such`: an example of one. */
export function refuseNoChange(body: Readonly<Record<string, unknown>>, such: string): void {
  if (Object.keys(body).length > 0) return;
  throw new CliError(`Nothing to change: give at least one option, such as ${such}. See --help.`, exitCodes.usage);
}

/** A column of a table: its name, and what stands in it of a row. */
export type Column<Row> = readonly [name: string, cell: (row: Row) => string];

/** One line a row; `figures` names the columns that are flush right. */
export function printRows<Row>(
  { out, print }: Terminal,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  figures: readonly string[] = [],
): void {
  const names = columns.map(([name]) => name);
  const cells = rows.map((row) => columns.map(([, cell]) => cell(row)));
  print(
    formatTable(
      names,
      cells,
      out,
      figures.map((name) => names.indexOf(name)),
    ),
  );
}

/** Tells Commander of the command and of those below it. */
export function register(parent: Command, context: CliContext, entry: CommandEntry): void {
  const made = parent.command(entry.name, { isDefault: entry.isDefault ?? false }).description(entry.description);
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
  if (entry.run) made.action(() => run(made, context, entry));
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
  const { terminal, input } = context;
  // Commander gives the value of an option that both have to the command that this one is part of.
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
  if (outcome.failure !== undefined) throw new CliError(outcome.failure);
}
