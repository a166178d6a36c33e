import { expect, test } from "bun:test";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { searchToolsAnswer } from "./tool-search.ts";

const tools = Array.from({ length: 2_000 }, (_, at) => ({
  name: `tool_${at}`,
  description: `Finds thing${at}. ${"word other ".repeat(90)}`,
  inputSchema: {},
}));

function namesIn(answer: JsonObject): unknown[] {
  const { tools: found } = answer["structuredContent"] as { tools: { name: unknown }[] };
  return found.map(({ name }) => name);
}

test("lets other work run while searches of one account read many descriptions", async () => {
  let turn = 0;
  const count = () => {
    turn++;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  const toolsOfTurn = new Map<number, number>();
  const counted = function* () {
    for (const tool of tools) {
      toolsOfTurn.set(turn, (toolsOfTurn.get(turn) ?? 0) + 1);
      yield tool;
    }
  };
  const searches = Array.from({ length: 3 }, () => searchToolsAnswer(counted(), { query: "thing1999" }, "acc_1"));
  for (const answer of await Promise.all(searches)) expect(namesIn(answer)).toEqual(["tool_1999"]);
  clearImmediate(turning);
  // Two parts may fall between two counts.
  expect(Math.max(...toolsOfTurn.values())).toBeLessThan(200);
});
