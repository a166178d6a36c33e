// Lists of tools: what an entry matches, which entry covers another, and what two lists have in common.
import { expect, test } from "bun:test";
import {
  allowsAllOf,
  allowsServer,
  allowsTool,
  commonTools,
  coversTools,
  eitherTools,
  toolEntryPattern,
} from "./tool-access.ts";

test("allows a tool that each list names directly or by its server, and none with an empty list", () => {
  const access = {
    lists: [
      ["github", "crm/read_*"],
      ["*/read_*", "github/search"],
    ],
  };
  const isAllowed = (server: string, tool: string) => allowsTool(access, server, tool);
  expect(isAllowed("github", "search")).toBe(true);
  expect(isAllowed("github", "delete")).toBe(false);
  expect(isAllowed("crm", "read_one")).toBe(true);
  expect(isAllowed("crm", "write")).toBe(false);
  expect(allowsServer(access, "crm")).toBe(true);
  expect(allowsServer(access, "mail")).toBe(false);
  const whole = { lists: [["git*"], ["github/*", "crm/search"]] };
  expect(["github", "crm", "gitlab"].filter((server) => allowsAllOf(whole, server))).toEqual(["github"]);
  expect(allowsAllOf({ lists: [["github/*"], ["github/search"]] }, "github")).toBe(false);
  expect(allowsAllOf(undefined, "github")).toBe(true);
  expect(allowsTool({ lists: [[]] }, "github", "search")).toBe(false);
  expect(allowsTool(undefined, "github", "search")).toBe(true);
});

test("covers an entry only if both its server and its tool are covered", () => {
  expect(coversTools("github", "github/search")).toBe(true);
  expect(coversTools("git*", "github")).toBe(true);
  expect(coversTools("github/*", "github")).toBe(true);
  expect(coversTools("github/search", "github")).toBe(false);
  expect(coversTools("github/s*", "git*/search")).toBe(false);
});

test("intersects two lists of tools, also where entries overlap partly", () => {
  expect(commonTools(["git*/read"], ["github/re*"])).toEqual(["github/read"]);
  expect(commonTools(["github", "crm"], ["*"])).toEqual(["github", "crm"]);
  expect(commonTools(["github"], ["crm"])).toEqual([]);
});

test("unites two lists of tools, to all if one allows all, without redundant entries", () => {
  expect(eitherTools([["github"], null])).toBeNull();
  expect(eitherTools([])).toBeNull();
  expect(
    eitherTools([
      ["github/search", "crm"],
      ["git*", "crm"],
    ]),
  ).toEqual(["crm", "git*"]);
  expect(eitherTools([[], []])).toEqual([]);
});

test("accepts a server, or a server and a tool, each with an asterisk only at its end", () => {
  const fine = ["*", "github", "git*", "github/search", "*/read_*", "github/*", "github/a/b"];
  expect(fine.filter((text) => !toolEntryPattern.test(text))).toEqual([]);
  const wrong = ["", "/", "github/", "/search", "g*b", "github/a*b", "Git Hub", "**"];
  expect(wrong.filter((text) => toolEntryPattern.test(text))).toEqual([]);
});
