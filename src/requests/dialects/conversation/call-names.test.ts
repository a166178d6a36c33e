// Tests that tools stay distinct under the names that engines get, and that calls come back under the client's names.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { withinMs } from "../../../../tests/support/long.ts";
import { ClientCalls, EngineTools } from "./call-names.ts";
import { CollectedReply } from "./collected-reply.ts";
import type { Tool } from "./conversation.ts";

function tool(name: string, namespace?: string, kind: Tool["kind"] = "function"): Tool {
  return { kind, name, namespace, place: "tools[0]" };
}

test("keeps function names, prefixes names with their namespace, and maps calls back", () => {
  const tools = new EngineTools([tool("read", "files"), tool("read"), tool("read", "mcp.web")]);
  expect(tools.nameOf(tool("read"))).toBe("read");
  expect(tools.nameOf(tool("read", "files"))).toBe("files__read");
  expect(tools.nameOf(tool("read", "mcp.web"))).toBe("mcp_web__read");
  expect([...tools.names]).toEqual([
    ["files__read", { kind: "function", name: "read", namespace: "files" }],
    ["mcp_web__read", { kind: "function", name: "read", namespace: "mcp.web" }],
  ]);
});

test("never gives a joined name that a function has, in any order", () => {
  const own = tool("a__b");
  for (const all of [
    [tool("b", "a"), own],
    [own, tool("b", "a")],
  ]) {
    const tools = new EngineTools(all);
    expect(tools.nameOf(own)).toBe("a__b");
    expect(tools.nameOf(tool("b", "a"))).toBe("a__b_2");
  }
});

test("separates a custom tool and a function of one name", () => {
  const tools = new EngineTools([tool("run", undefined, "custom"), tool("run")]);
  expect(tools.nameOf(tool("run"))).toBe("run");
  expect(tools.nameOf(tool("run", undefined, "custom"))).toBe("run_2");
});

test("keeps the distinct ends of names above 64 characters, with the tool's own name", () => {
  const [first, second] = [tool("search", "x".repeat(100)), tool("search", `y${"x".repeat(100)}`)];
  const tools = new EngineTools([first, second]);
  const names = [tools.nameOf(first), tools.nameOf(second)];
  expect(names[0]).toHaveLength(64);
  expect(names[0]).toEndWith("__search");
  expect(names[1]).toHaveLength(64);
  expect(names[1]).toEndWith("__search_2");
  expect(tools.nameOf(tool("n".repeat(60), "group"))).toHaveLength(64);
});

test("separates names that contain the separator", () => {
  const tools = new EngineTools([]);
  const names = [tool("b c", "a"), tool("c", "a b"), tool("c", "a__b"), tool("b__c", "a")].map((one) =>
    tools.nameOf(one),
  );
  expect(new Set(names).size).toBe(4);
});

test("gives any tools unique names that map back to them", () => {
  const part = fc.oneof(fc.constantFrom("a", "b", "a__b", "a_2", "x".repeat(70)), fc.string({ minLength: 1 }));
  const kind = fc.constantFrom("function" as const, "custom" as const);
  const any = fc.record({ name: part, namespace: fc.option(part, { nil: undefined }), kind });
  fc.assert(
    fc.property(fc.array(any), fc.array(any), (offered, called) => {
      const tools = new EngineTools(offered.map((one) => ({ ...one, place: "tools" })));
      const seen = new Map<string, string>();
      for (const one of [...offered, ...called]) {
        const name = tools.nameOf(one);
        const key = JSON.stringify([one.kind, one.namespace ?? null, one.name]);
        expect(seen.get(name) ?? key).toBe(key);
        seen.set(name, key);
        const reported = tools.names.get(name) ?? { kind: "function", name, namespace: undefined };
        expect(reported).toEqual({ kind: one.kind, name: one.name, namespace: one.namespace });
      }
    }),
  );
});

test("names ten thousand tools of one joined name in time", () => {
  const began = performance.now();
  const tools = new EngineTools(
    Array.from({ length: 10_000 }, (_, index) => tool("run", `a${".".repeat(index % 2)}${"é".repeat(80)}${index}`)),
  );
  expect(tools.names.size).toBe(10_000);
  const same = new EngineTools(Array.from({ length: 5_000 }, (_, index) => tool("r".repeat(80), `g${index}`)));
  expect(same.names.size).toBe(5_000);
  expect(performance.now() - began).toBeLessThan(withinMs(2_000));
});

test("writes a custom tool as a function of one text, with the grammar in its description", () => {
  const grammar = { type: "grammar", syntax: "lark", definition: "start: /a+/" };
  const custom: Tool = { ...tool("patch", undefined, "custom"), description: "Edits files.", format: grammar };
  const described = new EngineTools([custom]).functionOf(custom);
  expect(described).toMatchObject({ name: "patch", parameters: { required: ["input"] } });
  expect(described.description).toBe(
    "Edits files.\n\nIts `input` is plain text, not JSON.\n\nIt must follow this lark grammar:\nstart: /a+/",
  );
  expect(new EngineTools([]).argumentsOf({ kind: "custom", input: 'a"b' })).toBe('{"input":"a\\"b"}');
});

test("maps calls back to client names, unwraps custom ones, and leaves others unchanged", () => {
  const tools = new EngineTools([tool("read", "files"), tool("patch", undefined, "custom")]);
  const reply = new CollectedReply();
  const calls = new ClientCalls(reply, tools.names);
  calls.call(0, { callId: "a", kind: "function", name: "files__read" });
  calls.call(1, { callId: "b", kind: "function", name: "patch" });
  calls.call(2, { callId: "c", kind: "function", name: "other" });
  calls.arguments(1, '{"why":"","input":"one\\n');
  calls.arguments(0, '{"path":1}');
  calls.arguments(1, 'two"}');
  calls.arguments(2, "{}");
  calls.end({ reason: "calls" });
  expect(reply.parts).toEqual([
    { type: "call", callId: "a", kind: "function", name: "read", namespace: "files", input: '{"path":1}' },
    { type: "call", callId: "b", kind: "custom", name: "patch", namespace: undefined, input: "one\ntwo" },
    { type: "call", callId: "c", kind: "function", name: "other", input: "{}" },
  ]);
});

test("leaves the text of a custom call unchanged for a server that knows custom tools", () => {
  const reply = new CollectedReply();
  const calls = new ClientCalls(reply, new EngineTools([tool("patch", undefined, "custom")]).names);
  calls.call(0, { callId: "b", kind: "custom", name: "patch" });
  calls.arguments(0, '{"input":"x"}');
  calls.end({ reason: "calls" });
  expect(reply.parts).toMatchObject([{ input: '{"input":"x"}' }]);
});

test("shortens a function's own name above 64 characters, and maps its calls back", () => {
  const [long, other] = [`mcp__server__${"x".repeat(80)}_read`, `mcp__other__${"x".repeat(80)}_read`];
  const tools = new EngineTools([tool(long), tool(other)]);
  const names = [tools.nameOf(tool(long)), tools.nameOf(tool(other))];
  expect(names.map((name) => name.length)).toEqual([64, 64]);
  expect(new Set(names).size).toBe(2);
  expect(tools.names.get(names[0] ?? "")).toMatchObject({ kind: "function", name: long });
});
