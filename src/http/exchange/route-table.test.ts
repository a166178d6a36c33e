// Tests the route for a path and a method. No other spelling of a path matches it.
import { describe, expect, test } from "bun:test";
import type { Route } from "./route.ts";
import { pathOf, RouteTable } from "./route-table.ts";

const route = (method: Route["method"], path: string) => ({ method, path, access: "public" }) as Route;
const routes = [
  route("GET", "/v1/models"),
  route("GET", "/v1/models/*"),
  route("POST", "/v1/chat/completions"),
  route("GET", "/v1/chat/completions"),
  route("GET", "/v1/chat/completions/:id"),
  route("DELETE", "/v1/chat/completions/:id"),
  route("GET", "/v1/chat/completions/:id/messages"),
];
const table = new RouteTable(routes);
const found = (method: string, path: string) => {
  const match = table.find(method, path);
  return match && [match.route.path, match.params];
};

describe("routes of a path", () => {
  test.each([
    ["GET", "/v1/models", "/v1/models", {}],
    ["HEAD", "/v1/models", "/v1/models", {}],
    ["GET", "/v1/models/org/name", "/v1/models/*", { "*": "org/name" }],
    ["GET", "/v1/models/a%2fb%20c", "/v1/models/*", { "*": "a/b c" }],
    ["GET", "/v1/models/100%", "/v1/models/*", { "*": "100%" }],
    ["GET", "/v1/models/../keys", "/v1/models/*", { "*": "../keys" }],
    ["POST", "/v1/chat/completions", "/v1/chat/completions", {}],
    ["DELETE", "/v1/chat/completions/c%31", "/v1/chat/completions/:id", { id: "c1" }],
    ["GET", "/v1/chat/completions/c1/messages", "/v1/chat/completions/:id/messages", { id: "c1" }],
  ])("finds the route of %s %s", (method, path, expected, params) => {
    expect(found(method, path)).toEqual([expected, params]);
  });

  test("finds another route for another method of a path that was just looked up", () => {
    const methods = ["GET", "GET", "POST", "POST", "DELETE", "GET"];
    const each = methods.map((method) => table.find(method, "/v1/chat/completions")?.route);
    expect(each).toEqual([routes[3], routes[3], routes[2], routes[2], undefined, routes[3]]);
  });

  test.each([
    ["GET", "/v1/Models"],
    ["GET", "/v1/models;x"],
    ["GET", "//v1/models"],
    ["GET", "/v1/./models"],
    ["GET", "/v1/models/"],
    ["GET", "/v1/chat/completions/"],
    ["GET", "/v1/chat/completions/c1/"],
    ["GET", "/v1/chat/completions//messages"],
    ["HEAD", "/v1/chat/completions/c1/x"],
    ["PUT", "/v1/models"],
    ["get", "/v1/models"],
  ])("finds no route for %s %s", (method, path) => {
    expect(found(method, path)).toBeUndefined();
  });
});

test("gives an exact path none of the methods of a pattern that it matches", () => {
  const own = new RouteTable([route("POST", "/v1/passkeys/options"), route("DELETE", "/v1/passkeys/:id")]);
  expect(own.allowed("/v1/passkeys/options")).toEqual(["POST"]);
  expect(own.find("DELETE", "/v1/passkeys/options")).toBeUndefined();
  expect(own.allowed("/v1/passkeys/p1")).toEqual(["DELETE"]);
});

test("lists the methods of a path, with HEAD beside GET", () => {
  expect(table.allowed("/v1/chat/completions").sort()).toEqual(["GET", "HEAD", "POST"]);
  expect(table.allowed("/v1/chat/completions/c1").sort()).toEqual(["DELETE", "GET", "HEAD"]);
  expect(table.allowed("/v1/nope")).toEqual([]);
});

describe("the path of a target", () => {
  test.each([
    ["/v1/models", "/v1/models"],
    ["/v1/models?limit=1", "/v1/models"],
    ["/v1/models#x", "/v1/models"],
    ["/?", "/"],
    ["http://host/v1/models?x", "/v1/models"],
    ["http://host", "/"],
    ["http://host?/v1/models", "/"],
    ["http://host#/v1/models", "/"],
    ["http://host?x=http://b/v1/models", "/"],
    ["*", "/"],
    ["/a/../b", "/a/../b"],
    ["/openai/v1/models?limit=1", "/v1/models"],
    ["/openai/v1", "/openai/v1"],
    ["/openai/v12/models", "/openai/v12/models"],
    ["/openai/openai/v1/models", "/openai/openai/v1/models"],
    ["/openai/v1/../keys", "/v1/../keys"],
  ])("reads the path of the target %s as %s", (target, path) => {
    expect(pathOf(target)).toBe(path);
  });
});
