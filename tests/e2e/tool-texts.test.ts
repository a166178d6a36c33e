// An MCP server that describes a tool to each person in another way, through a running Headrace.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type AskingServer, accountsThere, startAskingServer } from "../support/mcp/asking-server.ts";
import { askRaw, callRaw } from "../support/mcp/raw-tools.ts";
import { startToolWorld, type ToolWorld } from "../support/mcp/tool-world.ts";
import { type Operated, operated } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { openServerPeople, type ServerPeople } from "../support/server-people.ts";

let notes: AskingServer;
let world: ToolWorld;
let people: ServerPeople;
let admin: Operated["admin"];

beforeEach(async () => {
  notes = startAskingServer({ describedTo: (person) => `Tells who ${person} is.` });
  world = await startToolWorld([{ name: "notes", url: notes.url, oauth: {}, approval: "first" }]);
  people = openServerPeople(world.server);
  ({ admin } = await operated(world.server, await makeOperatorKey(world.server.dataDir, [])));
});

afterEach(async () => {
  await people.close();
  await world[Symbol.asyncDispose]();
  await notes[Symbol.asyncDispose]();
});

/** A member with that account there; gives a key of theirs. */
async function connected(account: string): Promise<string> {
  const { headers, reading } = await people.addMember("member");
  const ask = async (path: string, body: object) => {
    const sent = { ...headers, "content-type": "application/json" };
    const answer = await fetch(world.server.url + path, { method: "POST", headers: sent, body: JSON.stringify(body) });
    return (await answer.json()) as { url: string; key: string };
  };
  const { url } = await ask("/v1/tools/connections", { server: "notes" });
  const back = await fetch(`${url}&person=${encodeURIComponent(account)}`, { redirect: "manual" });
  const page = await fetch(back.headers.get("location") ?? "", { headers: reading, redirect: "manual" });
  expect(await page.text()).toContain("Your account is connected");
  return (await ask("/v1/keys", { name: "agent", scopes: ["tools:use"] })).key;
}

async function listed(key: string): Promise<unknown[]> {
  const { message } = await askRaw(world.at("notes"), "tools/list", {}, { key });
  const { tools } = message.result as { tools: { description: string }[] };
  return tools.map(({ description }) => description);
}

const onRecord = async () => (await admin("GET", "/tool-servers/notes/definitions")).body.data[0];

async function decide(decision: "approved" | "refused"): Promise<unknown> {
  const { name, digest } = await onRecord();
  return (await admin("POST", "/tool-servers/notes/definitions", { name, digest, decision })).body;
}

test("approves each person's variant of a tool text, keeps both, and withdraws both on a denial", async () => {
  const [ann, ben] = await Promise.all(accountsThere.map(connected));
  if (!ann || !ben) throw new Error("Nobody is connected.");
  expect(await listed(ann)).toEqual(["Tells who ann@there.example is."]);
  expect(await listed(ben)).toEqual([]);
  expect((await callRaw(world.at("notes"), "whoami", { key: ben })).message.error).toMatchObject({
    message: "Unknown tool: whoami",
  });
  expect(await onRecord()).toMatchObject({
    state: "changed",
    definition: { description: "Tells who ben@there.example is." },
    approved: { description: "Tells who ann@there.example is." },
    approved_others: 0,
  });
  // Nobody loses what they have while it waits.
  expect(await listed(ann)).toHaveLength(1);
  expect(await decide("approved")).toMatchObject({ state: "approved", approved_others: 1 });
  for (const [key, person] of [[ann, "ann"] as const, [ben, "ben"] as const]) {
    expect(await listed(key)).toEqual([`Tells who ${person}@there.example is.`]);
    const { message } = await callRaw(world.at("notes"), "whoami", { key });
    expect(message.result).toMatchObject({ content: [{ text: `whoami was asked by ${person}@there.example.` }] });
  }
  expect(await onRecord()).toMatchObject({ state: "approved", approved_others: 1 });
  expect(await decide("refused")).toMatchObject({ state: "refused", approved: null, approved_others: 0 });
  for (const key of [ann, ben]) expect(await listed(key)).toEqual([]);
});
