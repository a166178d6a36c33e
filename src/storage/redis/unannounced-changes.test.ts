// However long nobody can be told, what waits to be told stays small, and nothing of it is lost.
import { expect, test } from "bun:test";
import { maxAnnouncedIds, UnannouncedChanges } from "./unannounced-changes.ts";

test("collects unsent changes by topic until they are taken", () => {
  const unannounced = new UnannouncedChanges();
  unannounced.add("credentials", ["key_1", "acct_1"]);
  unannounced.add("routing", undefined);
  unannounced.add("credentials", ["key_2"]);
  expect(unannounced.take()).toEqual([
    ["credentials", ["key_1", "acct_1", "key_2"]],
    ["routing", undefined],
  ]);
  expect(unannounced.take()).toEqual([]);
});

test("drops the ids of unsent changes that exceed one message, and reports the topic as changed", () => {
  const unannounced = new UnannouncedChanges();
  for (let n = 0; n < maxAnnouncedIds; n++) unannounced.add("credentials", [`key_${n}`]);
  expect(unannounced.take()[0]?.[1]).toHaveLength(maxAnnouncedIds);
  for (let n = 0; n <= maxAnnouncedIds; n++) unannounced.add("credentials", [`key_${n}`]);
  unannounced.add("credentials", ["key_later"]);
  expect(unannounced.take()).toEqual([["credentials", undefined]]);
});

test("drops the ids of unsent changes once one has unknown ids", () => {
  const unannounced = new UnannouncedChanges();
  unannounced.add("credentials", ["key_1"]);
  unannounced.add("credentials", undefined);
  unannounced.add("credentials", ["key_2"]);
  expect(unannounced.take()).toEqual([["credentials", undefined]]);
});
