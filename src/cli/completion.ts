// `headrace completion`: scripts that complete commands, options and their values, generated from the command
// definitions.
import type { Command, Option } from "commander";
import { command } from "./command.ts";
import { bashScript, type Entry, type Flag, fishScript, zshScript } from "./completion-scripts.ts";

const shells = ["bash", "zsh", "fish"] as const;
export const completionCommand = command({
  name: "completion",
  summary: "print a script that completes commands in your shell",
  description: "Print a script that completes commands and options in your shell.",
  arguments: [["<shell>", "which shell", shells]],
  examples: [
    "headrace completion bash > ~/.local/share/bash-completion/completions/headrace",
    "headrace completion zsh > ~/.zsh/completions/_headrace   # a directory of $fpath",
    "headrace completion fish > ~/.config/fish/completions/headrace.fish",
    "source <(headrace completion bash)                       # this shell only",
  ],
  async run({ program, terminal }, shell) {
    const write = { bash: bashScript, zsh: zshScript, fish: fishScript }[shell];
    terminal.print(write(describe(program)));
  },
});

function describe(command: Command, path: string[] = []): Entry[] {
  const visible = command.createHelp();
  const children = visible.visibleCommands(command).filter((child) => child.name() !== "help");
  const entry: Entry = {
    path,
    subcommands: children.map((child) => ({ name: child.name(), summary: child.summary() || child.description() })),
    flags: visible.visibleOptions(command).map(flagOf),
    words: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
  };
  return [entry, ...children.flatMap((child) => describe(child, [...path, child.name()]))];
}

function flagOf(option: Option): Flag {
  const takesValue = option.required || option.optional;
  const values = option.argChoices ? { words: option.argChoices } : /path|file|dir/.test(option.flags) ? "file" : "any";
  return {
    names: [option.short, option.long].filter((name) => name != null),
    description: option.description,
    values: takesValue ? values : undefined,
  };
}
