import { describe, expect, test } from "bun:test";
import { Command } from "commander";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { register } from "./command.ts";
import { commands, commandsMeant, headings } from "./commands.ts";
import { refuseUnknownCommand } from "./program.ts";
import { createContext } from "./terminal/context.ts";

test.each([
  [["models", "sho", "x"], "There is no command `headrace models sho`. Did you mean `headrace models show`?"],
  [["nodes", "drian", "gpu-1"], "There is no command `headrace nodes drian`. Did you mean `headrace nodes drain`?"],
  [["tools", "xyz"], "There is no command `headrace tools xyz`. `headrace tools --help` lists the commands."],
  [["usage", "--dys", "7"], "error: unknown option '--dys'\n(Did you mean --days?)"],
  [["keys", "lst"], "error: unknown command 'lst'\n(Did you mean list?)"],
])("refuses the mistyped %p and suggests a command or flag", async (args, message) => {
  const { code, stdout, stderr } = await runCommand(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
});

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
