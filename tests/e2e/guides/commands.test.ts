// The guide of the command line against the program: each command is in its table, and no other.
import { expect, test } from "bun:test";
import { Command } from "commander";
import { register } from "../../../src/cli/command.ts";
import { commands } from "../../../src/cli/commands.ts";
import { createContext } from "../../../src/cli/terminal/context.ts";
import { root } from "./blocks.ts";

/** After `keys list`, `show` is a command below `keys`; after `pull`, `rm` is one of its own. */
function wordsOf(cell: string, known: readonly string[]): string[] {
  const all = [...cell.matchAll(/`([a-z-]+(?: [a-z-]+)?)[^`]*`/g)].map(([, words = ""]) => words);
  const parent = all.find((words) => words.includes(" "))?.split(" ")[0];
  return all.map((words) => (known.includes(`${parent} ${words}`) ? `${parent} ${words}` : words));
}

test("lists exactly the program's commands and subcommands in the command line guide", async () => {
  const program = new Command();
  for (const load of commands.values()) register(program, createContext({}), await load());
  const known = program.commands.flatMap((command) => {
    const below = command.commands.filter((sub) => sub.name() !== "help");
    return [command.name(), ...below.map((sub) => `${command.name()} ${sub.name()}`)];
  });
  const guide = await Bun.file(`${root}/docs/command-line.md`).text();
  const listed = [...guide.matchAll(/^\| (`[a-z].*?) +\| /gm)].flatMap(([, cell = ""]) => wordsOf(cell, known));
  const named = new Set(listed.flatMap((words) => [words, words.split(" ")[0] ?? ""]));
  expect([...named].sort()).toEqual(known.sort());
});
