// Tests that a model name always has the same JSON, however many other names were requested in between.
import { expect, test } from "bun:test";
import { modelNameJson } from "./model-names.ts";

test("returns the same JSON for a name each time, beyond the cache size", () => {
  const names = ["", "a", 'längerer "Name" 😀', "\ud800", ...Array.from({ length: 20_000 }, (_, n) => `m${n}`)];
  for (const name of [...names, ...names]) expect(modelNameJson(name).toString()).toBe(JSON.stringify(name));
});
