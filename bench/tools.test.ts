// The short form of the section of tools, and that its figures are of calls that were answered.
import { expect, test } from "bun:test";
import { goals } from "./goals.ts";
import { startLoadGenerator } from "./load.ts";
import { verify } from "./measure.ts";
import { startMock } from "./mock.ts";
import { readOptions } from "./options.ts";
import { unplaced } from "./placement.ts";
import { render } from "./report.ts";
import { faults } from "./result.ts";
import { sampleResult } from "./sample-result.ts";
import { calledTool, toolHeaders } from "./tool-workload.ts";
import { measureTools, pathAt, startMcpServer } from "./tools.ts";

test("finds every answered tool call in the ledger, with few and many tools, compared with direct calls", async () => {
  await using mock = await startMock();
  await using load = startLoadGenerator();
  const options = readOptions(["--section", "tools", "--quick", "--rounds", "1"]);
  if (!options) throw new Error("No options.");
  const scaling = await measureTools({
    bench: { mock, load, windowMs: 100 },
    options: { ...options, warmUpPasses: 1 },
    placement: unplaced,
    tell: () => {},
  });
  const result = { ...sampleResult(), core: null, scaling };
  expect(faults(result)).toEqual([]);
  expect(scaling.map(({ points }) => points.map(({ at, series }) => `${at} ${series}`))).toEqual(
    Array.from({ length: 2 }, () => [
      ...["20 the server itself", "20 Headrace", "2000 the server itself", "2000 Headrace"],
    ]),
  );
  expect(scaling.flatMap(({ samples }) => samples).every(({ requests }) => requests > 0)).toBe(true);
  expect(goals(result).filter(({ title }) => title.startsWith("Calls of a tool"))).toHaveLength(2);
  expect(render(result)).toContain("tools, 64 connections");
}, 60_000);

test("excludes a refused tool call from the counts and figures", async () => {
  await using server = await startMcpServer();
  const target = { name: "direct", title: "the server", port: server.port, key: "unused", pids: () => [], settleMs: 0 };
  const call = (model: string) =>
    verify({ ...target, format: "tool", path: pathAt("direct", 20), model, headers: toolHeaders(model) });
  await call(calledTool(20));
  await expect(call("tool_none")).rejects.toThrow("There is no such tool");
  expect((await server.counters()).sources["direct"]?.requests).toBe(1);
});
