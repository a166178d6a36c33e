// Clients of tools as their makers publish them, through the gateway: signed in by OAuth in a real browser, each as its person.
import { afterAll, describe, expect, test } from "bun:test";
import { leaveBrowser } from "../../support/chromium.ts";
import { withinMs } from "../../support/long.ts";
import { accountsThere } from "../../support/mcp/asking-server.ts";
import { startPeopleWorld, type ToolPerson } from "../../support/mcp/people-world.ts";
import { type ToolClient, toolClients } from "../../support/mcp/tool-clients.ts";

afterAll(leaveBrowser);

const [annThere, benThere] = accountsThere;
/** They start programs that take their time, some of them eight times. */
const deadlineMs = withinMs(40_000);
const tokenSeconds = 3_600;
const said = "This is a simple text response for testing.";

/** Sorted, as clients have their own order, and with the characters that all of them take. */
async function toolsOf(client: ToolClient, { place }: ToolPerson, known: string): Promise<string[]> {
  return (await client.tools(place, known)).map((name) => name.replaceAll("-", "_")).sort();
}

/** The first time, as whoever starts again would: agents begin without tools that take them too long, as those of a process may. */
async function firstToolsOf(client: ToolClient, person: ToolPerson, known: string): Promise<string[]> {
  for (let tries = 1; ; tries++) {
    const names = await toolsOf(client, person, known);
    if (names.length > 0 || tries === 4) return names;
  }
}

describe.each(Object.entries(toolClients))("%s", (_, client) => {
  test(
    "signs a person in, calls the person's tools, renews tokens, and loses access once it is revoked",
    async () => {
      await using world = await startPeopleWorld();
      await using ann = await world.join("ann", ["new/test_simple_text", "old", "program/test_*", "notes"]);
      await client.signIn(ann.place);
      const old = ["old_test_elicitation", "old_test_simple_text", "old_test_tool_with_progress"];
      const always = ["new_test_simple_text", ...old, "program_test_simple_text"];
      expect(await firstToolsOf(client, ann, "new_test_simple_text")).toEqual(
        [...always, "notes_connect_account"].sort(),
      );
      for (const server of ["new", "old", "program"]) {
        expect(await client.call(ann.place, `${server}_test_simple_text`)).toContain(said);
      }
      const reported = await client.call(ann.place, "notes_connect_account");
      expect(reported).toContain("connect your account there first");
      const at = /at (http\S+)/.exec(reported)?.[1];

      await ann.connect(annThere, at);
      world.clock.shift(tokenSeconds + 1);
      const own = ["notes_whoami", "notes_write_note"];
      expect(await toolsOf(client, ann, "notes_whoami")).toEqual([...always, ...own].sort());
      expect(await client.call(ann.place, "notes_whoami")).toContain(`whoami was asked by ${annThere}.`);

      const { length } = world.notes.calls;
      await ann.removeAccess();
      const gone = await toolsOf(client, ann, "notes_whoami").catch(() => []);
      expect(gone).toEqual([]);
      expect(await client.call(ann.place, "notes_whoami").catch(() => "")).not.toContain(annThere);
      expect(world.notes.calls).toHaveLength(length);
    },
    deadlineMs,
  );

  test(
    "shows two people different tools and uses their own accounts",
    async () => {
      await using world = await startPeopleWorld();
      await using ann = await world.join("ann", ["notes", "old/test_simple_text"]);
      await using ben = await world.join("ben", ["notes/whoami", "new/test_simple_text"]);
      const both = [
        { person: ann, account: annThere, tools: ["notes_whoami", "notes_write_note", "old_test_simple_text"] },
        { person: ben, account: benThere, tools: ["new_test_simple_text", "notes_whoami"] },
      ];
      for (const { person, account } of both) {
        await client.signIn(person.place);
        await person.connect(account);
      }
      for (const { person, account, tools } of both) {
        expect(await toolsOf(client, person, "notes_whoami")).toEqual(tools);
        expect(await client.call(person.place, "notes_whoami")).toContain(`whoami was asked by ${account}.`);
      }
      expect(await client.call(ben.place, "notes_write-note").catch(() => "")).not.toContain(benThere);
      // Some clients are told by a model which tool they are to list.
      const calls = new Set(world.notes.calls.map(({ person, tool }) => `${person} ${tool}`));
      expect(calls).toEqual(new Set([`${annThere} whoami`, `${benThere} whoami`]));
    },
    deadlineMs,
  );
});
