// A quota counts requests by model and tag.
import { expect, test } from "bun:test";
import { isCounted } from "./quota-filter.ts";

const models = { filter: { models: ["gpt-*", "tiny"] } };
const tag = { filter: { tag: "team-a" } };

test("counts requests for the models that a quota names, and none of which no model is known", () => {
  expect(["gpt-6", "tiny", "tinier", "claude"].map((model) => isCounted(models, { model }))).toEqual([
    ...[true, true, false, false],
  ]);
  expect(isCounted(models, {})).toBe(false);
  expect(isCounted({}, {})).toBe(true);
});

test("counts requests with the tag that a quota names, whatever others they have", () => {
  expect([undefined, [], ["team-b"], ["x", "team-a"]].map((tags) => isCounted(tag, { tags }))).toEqual([
    ...[false, false, false, true],
  ]);
  expect(isCounted({ filter: { ...models.filter, ...tag.filter } }, { model: "tiny", tags: ["team-a"] })).toBe(true);
  expect(isCounted({ filter: { ...models.filter, ...tag.filter } }, { model: "big", tags: ["team-a"] })).toBe(false);
});
