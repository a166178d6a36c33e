import { expect, test } from "bun:test";
import { namedResources } from "./resources.ts";

const issuer = "https://gateway.example";

test("accepts ten resources without repetition, and refuses eleven", () => {
  const servers = Array.from({ length: 11 }, (_, i) => `${issuer}/mcp/server-${i}`);
  expect(namedResources(servers.slice(0, 10), issuer)).toHaveLength(10);
  expect(namedResources([`${issuer}/v1`, `${issuer}/v1`], issuer)).toEqual(["/v1"]);
  expect(namedResources(servers, issuer)).toEqual({ fault: "resource: at most 10 of them." });
});
