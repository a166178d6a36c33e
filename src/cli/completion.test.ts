// Tests the completion scripts in the installed shells.
import { describe, expect, test } from "bun:test";
import { runCommand } from "../../tests/fixtures/command-line.ts";

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout } = await runCommand(["completion", shell]);
  expect(code).toBe(0);
  return stdout;
}

async function shell(
  command: readonly string[],
  input: string,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([...command], { stdin: new Blob([input]), stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

const installed = (name: string) => test.skipIf(Bun.which(name) === null);

describe("completion in bash", () => {
  installed("bash").each([
    [["ke"], ["keys"]],
    [
      ["keys", "r"],
      ["rotate", "resume", "revoke"],
    ],
    [["keys", "usage", "ci", "--bu"], ["--bucket"]],
    [
      ["keys", "usage", "--bucket", ""],
      ["hour", "day", "month"],
    ],
    [["usage", "--bucket", "d"], ["day"]],
    [
      ["completion", ""],
      ["bash", "zsh", "fish"],
    ],
    // The name of a command is no command where a value is expected.
    [["chat", "--model", "keys", "--no"], ["--no-stream"]],
    [["models", "list", "--base-url", ""], []],
    [["models", "list", "--data-dir", "/de"], ["/dev"]],
    [["nonsense", "--x"], []],
  ])("the words %p are completed to %p in bash", async (words, expected) => {
    const typed = ["headrace", ...words].map((word) => `'${word}'`).join(" ");
    const check = `
COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _headrace 2>/dev/null
printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await shell(["bash", "--norc"], (await scriptFor("bash")) + check);
    expect(stdout.split("\n").filter((word) => word !== "")).toEqual(expected);
  });
});

describe("validity of completion scripts", () => {
  installed("bash")("the script for bash is valid", async () => {
    expect(await shell(["bash", "-n"], await scriptFor("bash"))).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  installed("zsh")("the script for zsh is valid", async () => {
    expect(await shell(["zsh", "-n"], await scriptFor("zsh"))).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  installed("fish")("the script for fish is valid", async () => {
    expect(await shell(["fish", "--no-execute"], await scriptFor("fish"))).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

test.each(["bash", "zsh", "fish"])("completes every command and option in the script for %s", async (name) => {
  const script = await scriptFor(name);
  const options = name === "fish" ? ["-l overlap", "-l group-by", "-s y"] : ["--overlap", "--group-by", "-y"];
  for (const word of ["pull", "engine install", "keys rotate", "status", "usage", ...options]) {
    expect(script).toContain(word);
  }
});

test("refuses another shell and names the supported ones", async () => {
  const { code, stderr } = await runCommand(["completion", "tcsh"]);
  expect(code).toBe(2);
  expect(stderr).toContain("bash, zsh, fish");
});
