// Clients make up the names of members: only what is safe in a header comes into one.
import { expect, test } from "bun:test";
import { ignoredMembers } from "./ignored-members.ts";

test("names and paths are told once each, with commas between them", () => {
  const members = ["metadata", "input[3].tools[0]", "service-tier", "metadata"];
  expect(ignoredMembers(members)).toBe("metadata, input[3].tools[0], service-tier");
});

test.each(["a\r\nset-cookie: b", "a\0", "größe", "", "a, b", "a".repeat(65), "😀"])(
  "%j is not told, but that there is more",
  (member) => {
    expect(ignoredMembers([member, "user"])).toBe("user, ...");
    expect(ignoredMembers([member])).toBe("...");
  },
);

test("a thousand names are told as the first of them", () => {
  const members = Array.from({ length: 1000 }, (_, i) => `${"a".repeat(60)}${i}`);
  const value = ignoredMembers(members);
  expect(value.length).toBeLessThan(2_200);
  expect(value).toEndWith(", ...");
});
