// Tests which addresses are resources of this gateway, including spellings by which foreign addresses may try to pass
// for one.
import { describe, expect, test } from "bun:test";
import { coversResource, defaultResources, resourceAt, resourceOf, rootAsAsked } from "./resources.ts";

const issuer = "https://gateway.example";

describe("a resource", () => {
  test.each([
    ["https://gateway.example/v1", "/v1"],
    ["https://gateway.example/mcp", "/mcp"],
    ["https://gateway.example/mcp/", "/mcp"],
    ["HTTPS://Gateway.Example:443/mcp/github", "/mcp/github"],
  ])("accepts a resource by its address: %s", (uri, path) => {
    expect(resourceOf(uri, issuer)).toBe(path);
  });

  test.each([
    ["https://gateway.example/"],
    ["https://gateway.example/mcp?x=1"],
    ["https://gateway.example/mcp#x"],
    ["https://gateway.example/mcp#"],
    ["https://gateway.example/mcp/Git_Hub"],
    ["https://gateway.example/mcp/a/b"],
    ["https://gateway.example/mcp/../v2"],
    ["https://gateway.example/mcpx"],
    ["https://user@gateway.example/mcp"],
    ["https://gateway.example.evil.example/mcp"],
    ["https://gateway.examplevil/mcp"],
    ["http://gateway.example/mcp"],
    ["https://gateway.example:444/mcp"],
    ["https://localhost/mcp"],
    ["/mcp"],
    ["mcp"],
  ])("rejects an address that only resembles a resource: %s", (uri) => {
    expect(resourceOf(uri, issuer)).toBeUndefined();
  });

  test("accepts a local resource under each name of this machine, and on no other port", () => {
    for (const host of ["localhost:7545", "127.0.0.1:7545", "[::1]:7545"]) {
      expect(resourceOf(`http://${host}/mcp`, "http://localhost:7545")).toBe("/mcp");
      expect(rootAsAsked("http://localhost:7545", host)).toBe(`http://${host}`);
    }
    expect(resourceOf("http://127.0.0.1:7546/mcp", "http://localhost:7545")).toBeUndefined();
    for (const host of ["127.0.0.1:7546", "evil.example:7545", "localhost", "", "a b", null]) {
      expect(rootAsAsked("http://localhost:7545", host)).toBe("http://localhost:7545");
    }
    expect(rootAsAsked(issuer, "localhost")).toBe(issuer);
  });

  test("covers each MCP server with the resource /mcp, and nothing else", () => {
    expect(coversResource(["/mcp"], "/mcp/github")).toBe(true);
    expect(coversResource(["/mcp/github"], "/mcp/github")).toBe(true);
    for (const [granted, at] of [
      ["/mcp", "/v1"],
      ["/mcp/github", "/mcp"],
      ["/mcp/github", "/mcp/gitlab"],
      ["/mcp/git", "/mcp/github"],
      ["/v1", "/mcp"],
    ] as const) {
      expect([granted, at, coversResource([granted], at)]).toEqual([granted, at, false]);
    }
  });

  test("maps a path below /mcp to its own resource, however it is encoded, and others to the API", () => {
    const paths = ["/mcp", "/mcp/github", "/mcp/git%68ub", "/mcp/%E0%A4%A", "/mcp/A_b", "/mcpx", "/v1/models", "/"];
    expect(paths.map(resourceAt)).toEqual(["/mcp", "/mcp/github", "/mcp/github", "/mcp", "/mcp", "/v1", "/v1", "/v1"]);
  });

  test("derives the default resources from the scopes", () => {
    expect(defaultResources(["tools:use"])).toEqual(["/mcp"]);
    expect(defaultResources(["chat:write", "tools:use"])).toEqual(["/v1", "/mcp"]);
    expect(defaultResources(["chat:write"])).toEqual(["/v1"]);
    expect(defaultResources([])).toEqual(["/v1"]);
  });
});
