// However long nobody can be told, what waits to be told stays small, and nothing of it is lost.
import { expect, test } from "bun:test";
import { maxAnnouncedIds, UnannouncedChanges } from "./unannounced-changes.ts";

test("collects unsent changes by topic until they are taken", () => {
  const untold = new UnannouncedChanges();
  untold.add("credentials", ["key_1", "acct_1"]);
  untold.add("routing", undefined);
  untold.add("credentials", ["key_2"]);
  expect(untold.take()).toEqual([
    ["credentials", ["key_1", "acct_1", "key_2"]],
    ["routing", undefined],
  ]);
  expect(untold.take()).toEqual([]);
});

test("drops the ids of unsent changes that exceed one message, and reports the topic as changed", () => {
  const untold = new UnannouncedChanges();
  for (let n = 0; n < maxAnnouncedIds; n++) untold.add("credentials", [`key_${n}`]);
  expect(untold.take()[0]?.[1]).toHaveLength(maxAnnouncedIds);
  for (let n = 0; n <= maxAnnouncedIds; n++) untold.add("credentials", [`key_${n}`]);
  untold.add("credentials", ["key_later"]);
  expect(untold.take()).toEqual([["credentials", undefined]]);
});

test("drops the ids of unsent changes once one has unknown ids", () => {
  const untold = new UnannouncedChanges();
  untold.add("credentials", ["key_1"]);
  untold.add("credentials", undefined);
  untold.add("credentials", ["key_2"]);
  expect(untold.take()).toEqual([["credentials", undefined]]);
});
