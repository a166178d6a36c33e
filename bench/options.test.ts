import { expect, test } from "bun:test";
import { readOptions } from "./options.ts";
import { UsageError } from "./usage-error.ts";

test("measures the core and the engine by default, and everything with --full", () => {
  expect(readOptions([])?.sections).toEqual(["core", "engine"]);
  expect(readOptions(["--quick"])?.sections).toEqual(["core"]);
  expect(readOptions(["--full"])?.sections).toHaveLength(12);
  expect(readOptions(["--section", "keys, streams"])?.sections).toEqual(["keys", "streams"]);
});

test("runs five rounds unless --quick is given", () => {
  expect(readOptions([])?.rounds).toBe(5);
  expect(readOptions(["--quick"])?.rounds).toBe(2);
  expect(readOptions(["--quick", "--rounds", "7"])?.rounds).toBe(7);
});

test("returns no options if only the help was requested", () => {
  expect(readOptions(["--help"])).toBeUndefined();
});

test("reads another gateway's address, key, model, process and headers from options", () => {
  const options = readOptions([
    "--other",
    "rival=http://127.0.0.1:8787/api/v1/,key=sk-1,model=m,pid=42,header=x-provider: openai",
  ]);
  expect(options?.others).toEqual([
    {
      name: "rival",
      hostname: "127.0.0.1",
      port: 8787,
      path: "/api/v1/chat/completions",
      key: "sk-1",
      model: "m",
      pid: 42,
      headers: { "x-provider": "openai" },
    },
  ]);
});

test.each([
  ["a round too many", ["--rounds", "101"], "--rounds"],
  ["rounds that are no number", ["--rounds", "x"], "--rounds"],
  ["an unknown section", ["--section", "core,disk"], "disk"],
  ["a port out of range", ["--mock-port", "70000"], "--mock-port"],
  ["an empty file name", ["--json", ""], "--json"],
  ["an unknown option", ["--fast"], "--fast"],
  ["another gateway without an address", ["--other", "rival"], "--other"],
  ["another gateway over TLS", ["--other", "rival=https://a.example/v1"], "--other"],
  ["another gateway with a name of ours", ["--other", "nginx=http://127.0.0.1:1/v1"], "nginx"],
  ["a process that is no number", ["--other", "rival=http://127.0.0.1:1/v1,pid=x"], "pid=x"],
])("refuses the option %s and names it", (_, args, named) => {
  expect(() => readOptions(args)).toThrow(UsageError);
  expect(() => readOptions(args)).toThrow(named);
});
