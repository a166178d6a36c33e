// Agents whose model and whose tools are both the gateway's: each turn and each call is on the ledger, of one person.
import { afterAll, describe, expect, test } from "bun:test";
import { agentModel } from "../../support/agents/agent-world.ts";
import { leaveBrowser } from "../../support/chromium.ts";
import { until } from "../../support/headrace.ts";
import { accountsThere } from "../../support/mcp/asking-server.ts";
import { type PeopleWorld, startPeopleWorld } from "../../support/mcp/people-world.ts";
import { agentsWithKey } from "../../support/mcp/tool-clients.ts";

afterAll(leaveBrowser);

const [annThere] = accountsThere;

interface Line {
  person_name: string;
  model: string;
  app_name: string | null;
  requests: number;
  errors: number;
}

/** The account's, once all that has ended is booked. */
async function statement({ model, owner }: PeopleWorld): Promise<Line[]> {
  await until(() => model.server.requests().open === 0, "every request has ended");
  await model.server.governance.ledger.flush();
  const { lines } = (await owner.ask("/v1/statement?group_by=person,model,app")) as { lines: unknown };
  return lines as Line[];
}

describe.each(Object.entries(agentsWithKey))("%s", (name, { client, useKey }) => {
  test("books model turns by the person's key and tool calls by sign-in to the same person", async () => {
    await using world = await startPeopleWorld();
    await using ann = await world.join("ann", ["notes"]);
    await client.signIn(ann.place);
    await ann.connect(annThere);
    expect(await client.call(ann.place, "notes_whoami")).toContain(`whoami was asked by ${annThere}.`);
    const lines = await statement(world);
    expect(lines).toContainEqual(
      expect.objectContaining({ person_name: "ann", model: "notes/whoami", app_name: name, requests: 1, errors: 0 }),
    );
    expect(lines).toContainEqual(expect.objectContaining({ person_name: "ann", model: agentModel, app_name: null }));
    expect(lines).toHaveLength(2);
  });

  test("uses one personal key for the model and the person's tools", async () => {
    await using world = await startPeopleWorld();
    await using ann = await world.join("ann", ["notes"]);
    await useKey(ann.place);
    await ann.connect(annThere);
    expect(await client.call(ann.place, "notes_write-note")).toContain(`write-note was asked by ${annThere}.`);
    const { data } = (await ann.handler.ask("/v1/requests")) as { data: { key: string; model: string }[] };
    expect(new Set(data.map(({ model }) => model))).toEqual(new Set([agentModel, "notes/write-note"]));
    expect(new Set(data.map(({ key }) => key)).size).toBe(1);
  });
});
