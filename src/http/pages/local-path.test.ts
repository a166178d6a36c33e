import { describe, expect, test } from "bun:test";
import { localPath, nextOf, signInPath } from "./local-path.ts";

test("accepts a local path with its query unchanged", () => {
  for (const path of ["/", "/settings", "/oauth/authorize?client_id=a&redirect_uri=https%3A%2F%2Fapp.example%2Fcb"]) {
    expect(localPath(path)).toBe(path);
  }
});

describe("paths that could lead elsewhere", () => {
  test.each([
    ["another site's address", "https://evil.example/"],
    ["an address without a scheme", "//evil.example/"],
    ["a backslash, which browsers take for a slash", "/\\evil.example/"],
    ["a backslash further on", "/settings\\..\\evil"],
    ["a tab, which browsers drop", "/\t/evil.example/"],
    ["a line break", "/settings\r\nset-cookie: a=b"],
    ["a blank", "/ /evil.example"],
    ["a letter that no header can carry, and browsers write as %E2%82%AC", "/settings?name=€"],
    ["a letter that some write as one byte, others as two", "/settings?name=é"],
    ["a script", "javascript:alert(1)"],
    ["a path without its slash", "settings"],
    ["nothing", ""],
    ["more than any page here has", `/${"a".repeat(5_000)}`],
  ])("rejects %s as a local path", (_what, path) => {
    expect(localPath(path)).toBeUndefined();
    expect(nextOf(signInPath(path))).toBeUndefined();
  });
});

test("keeps the return path intact in the address of the sign-in page", () => {
  const next = "/oauth/authorize?state=a%26b&scope=chat:write+models:read";
  expect(nextOf(signInPath(next))).toBe(next);
  expect(nextOf("/sign-in")).toBeUndefined();
});
