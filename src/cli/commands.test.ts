import { describe, expect, test } from "bun:test";
import { Command } from "commander";
import { register } from "./command.ts";
import { commands, commandsMeant, headings } from "./commands.ts";
import { refuseUnknownCommand } from "./program.ts";
import { createContext } from "./terminal/context.ts";

describe("loading of commands", () => {
  test("registers one command for each entry, under the entry's name", async () => {
    for (const [name, load] of commands) {
      const program = new Command();
      register(program, createContext({}), await load());
      expect(program.commands.map((command) => command.name())).toEqual([name]);
    }
  });

  test("puts every command of the help under a heading", () => {
    const [first] = commands.keys();
    expect([...headings.keys()][0]).toBe(first);
    expect([...headings.keys()].filter((name) => !commands.has(name))).toEqual([]);
  });

  test("loads only the named command", () => {
    expect(commandsMeant(["keys", "list"])).toEqual(["keys"]);
    expect(commandsMeant(["keys", "--help"])).toEqual(["keys"]);
    expect(commandsMeant(["serve", "--port", "0"])).toEqual(["serve"]);
  });

  test("loads serve without a command or with options only", () => {
    expect(commandsMeant([])).toEqual(["serve"]);
    expect(commandsMeant(["--port", "0"])).toEqual(["serve"]);
    expect(commandsMeant(["--version"])).toEqual(["serve"]);
  });

  test("loads all commands for help and completion, and for options before a later command", () => {
    const all = [...commands.keys()];
    const asked = [["--help"], ["-h"], ["help"], ["help", "keys"], ["completion", "bash"], ["--port", "0", "--help"]];
    for (const args of [...asked, ["--", "keys"]]) expect(commandsMeant(args)).toEqual(all);
  });

  test.each([
    ["run", "chat --model"],
    ["ps", "models ps"],
    ["show", "models show"],
    ["stop", "models stop"],
    ["modles", "models"],
  ])("refuses the unknown command %s and names headrace %s", (word, meant) => {
    expect(() => refuseUnknownCommand(word)).toThrow(
      `There is no command \`${word}\`. Did you mean \`headrace ${meant}\`?`,
    );
  });
});
