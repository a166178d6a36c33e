// Sessions and streams end once whoever they belong to may not have them any more.
import { expect, test } from "bun:test";
import { principalFor } from "../../../tests/support/principal.ts";
import { systemClock } from "../../base/clock.ts";
import type { Principal } from "../../domain/principal.ts";
import { Standing } from "./standing.ts";

const bounds: [string, Partial<Principal>][] = [
  ["never leave", { reach: { models: [], neverLeaves: true } }],
  ["use some tools alone", { tools: { lists: [["one"]] } }],
  ["use no tools", { scopes: new Set(["chat:write"]) }],
];

test.each(bounds)("of a key that may from now on %s, and of no other one", async (_, changes) => {
  const standing = new Standing({
    clock: systemClock,
    behind: async (id) => principalFor(id === "key_changed" ? changes : {}),
  });
  const ended: string[] = [];
  const [own] = principalFor().keys;
  for (const id of ["key_changed", "key_same"]) {
    standing.add(principalFor({ keys: [{ ...own, id }] }), undefined, () => ended.push(id));
  }
  await standing.look();
  expect(ended).toEqual(["key_changed"]);
  standing.close();
});
