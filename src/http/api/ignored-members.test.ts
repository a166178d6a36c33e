// Tests that only names of JSON members that are safe in a header are written into one: clients choose these names.
import { expect, test } from "bun:test";
import { ignoredMembers } from "./ignored-members.ts";

test("lists each ignored member once, separated by commas", () => {
  const members = ["metadata", "input[3].tools[0]", "service-tier", "metadata"];
  expect(ignoredMembers(members)).toBe("metadata, input[3].tools[0], service-tier");
});

test.each(["a\r\nset-cookie: b", "a\0", "größe", "", "a, b", "a".repeat(65), "😀"])(
  "replaces the unprintable member name %j by an ellipsis",
  (member) => {
    expect(ignoredMembers([member, "user"])).toBe("user, ...");
    expect(ignoredMembers([member])).toBe("...");
  },
);

test("shortens a list of a thousand member names", () => {
  const members = Array.from({ length: 1000 }, (_, i) => `${"a".repeat(60)}${i}`);
  const value = ignoredMembers(members);
  expect(value.length).toBeLessThan(2_200);
  expect(value).toEndWith(", ...");
});
