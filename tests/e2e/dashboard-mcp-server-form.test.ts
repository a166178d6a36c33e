// The form for an MCP server: what is sent of what was typed, and what of a stored one stays as it is.
import { expect, test } from "bun:test";
import {
  creationOf,
  draftOf,
  errorsOf,
  movedOf,
  newServer,
  placedAt,
  suggestedName,
  testOf,
} from "../../web/pages/mcp-servers/server-draft.ts";

const stored = draftOf({
  ...{ object: "tool_server", name: "crm", title: null, description: null, source: "database" },
  ...{ overrides_database: false, place: "http", url: "https://crm.example/mcp", node: null },
  ...{
    credentials: "headers",
    credentials_unreadable: false,
    header_names: ["x-token"],
    oauth: null,
    environments: null,
  },
  ...{ accounts: null, tools: null, approval: "first", sharing: "person", timeout_seconds: 60, local: false },
  protocol_version: null,
  ...{ max_result_bytes: 4_194_304, max_concurrency: 32, price_per_call: null, enabled: true },
  ...{ created_at: 1, waiting: 0 },
});

const filled = { ...newServer, name: "crm", url: " https://crm.example/mcp " };

test("sends all fields of a new MCP server, with its address and identity", () => {
  const headers = [
    { key: 0, name: "x-token", value: "secret" },
    { key: 1, name: "", value: "" },
  ];
  expect(creationOf({ ...filled, credentials: "headers", headers })).toMatchObject({
    ...{ name: "crm", url: "https://crm.example/mcp", headers: { "x-token": "secret" }, oauth: null },
    ...{ environments: null, accounts: null, tools: null, approval: "first", sharing: "person", price_per_call: null },
  });
  expect(creationOf({ ...filled, credentials: "person", clientId: "c", scopes: ["a"] })).toMatchObject({
    ...{ headers: null, oauth: { client_id: "c", scopes: ["a"] } },
  });
  const atNode = creationOf({ ...filled, place: "node", node: "node_1", nodeServer: "files" });
  expect(atNode).toMatchObject({ node: { node: "node_1", server: "files" } });
  expect(atNode.url).toBeUndefined();
});

test("sends address and identity of a stored MCP server only if they changed, and never its stored headers", () => {
  expect(movedOf(stored, stored)).toEqual({});
  expect(movedOf({ ...stored, url: "https://other.example/mcp" }, stored)).toEqual({
    local: false,
    url: "https://other.example/mcp",
  });
  const headers = [{ key: 0, name: "x-token", value: "new" }];
  expect(movedOf({ ...stored, headers }, stored)).toEqual({ headers: { "x-token": "new" }, oauth: null });
  expect(movedOf({ ...stored, credentials: "none" }, stored)).toEqual({ headers: null, oauth: null });
});

test("tests a stored MCP server by name while its address and identity are unchanged, else by the form's values", () => {
  expect(testOf({ ...stored, title: "CRM" }, stored)).toEqual({ name: "crm" });
  const protocolVersion = "2025-11-25" as const;
  expect(testOf({ ...stored, protocolVersion }, stored)).toEqual({ name: "crm", protocol_version: protocolVersion });
  expect(testOf(stored, { ...stored, protocolVersion })).toEqual({ name: "crm", protocol_version: null });
  expect(testOf({ ...filled, protocolVersion })).toEqual({
    url: "https://crm.example/mcp",
    protocol_version: protocolVersion,
  });
  expect(testOf({ ...stored, url: "https://other.example/mcp", credentials: "none" }, stored)).toEqual({
    url: "https://other.example/mcp",
  });
  const headers = [{ key: 0, name: "x-token", value: "new" }];
  expect(testOf({ ...filled, credentials: "headers", headers })).toEqual({
    url: "https://crm.example/mcp",
    headers: { "x-token": "new" },
  });
});

test("reports missing fields of an MCP server before sending anything", () => {
  expect(errorsOf(filled)).toEqual({});
  expect(Object.keys(errorsOf(newServer))).toEqual(["url", "name"]);
  expect(errorsOf({ ...filled, credentials: "headers" })["headers"]).toBeDefined();
  expect(errorsOf({ ...filled, place: "node" })["node"]).toBeDefined();
  expect(errorsOf({ ...filled, environments: [] })["environments"]).toBeDefined();
  for (const name of ["Crm", "-crm", "crm-", "c".repeat(25), "c_rm"]) {
    expect([name, errorsOf({ ...filled, name })["name"]]).toEqual([name, expect.any(String)]);
  }
});

test("suggests a valid MCP server name that is not taken", () => {
  expect(suggestedName("River Gauges (v2)", [])).toBe("river-gauges-v2");
  expect(suggestedName("gauges", ["gauges", "gauges-2"])).toBe("gauges-3");
  expect(suggestedName("水位", [])).toBe("");
  expect(errorsOf({ ...filled, name: suggestedName(`${"a".repeat(20)}-bcd`, []) })).toEqual({});
});

test("clears the local mark when an MCP server's address changes, unless it is set again", () => {
  const local = { ...stored, isLocal: true };
  expect(placedAt(local, { url: "https://crm.example/other" })).toEqual({ url: "https://crm.example/other" });
  expect(placedAt(local, { url: "https://elsewhere.example/mcp" })).toMatchObject({ isLocal: false });
  expect(placedAt(local, { place: "node" })).toMatchObject({ place: "node", isLocal: false });
  expect(placedAt({ ...local, place: "node", node: "a" }, { node: "b" })).toMatchObject({ isLocal: false });
  const moved = { ...local, url: "https://elsewhere.example/mcp" };
  expect(movedOf(moved, local)).toMatchObject({ local: true });
  expect(movedOf({ ...moved, isLocal: false }, local)).toMatchObject({ local: false });
});
