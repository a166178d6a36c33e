// Clients of tools as their makers publish them, through the gateway: signed in by OAuth in a real browser, each as its person.
import { afterAll, expect, test } from "bun:test";
import { leaveBrowser } from "../../support/chromium.ts";
import { accountsThere } from "../../support/mcp/asking-server.ts";
import { startPeopleWorld, type ToolPerson } from "../../support/mcp/people-world.ts";
import { nameInCodex, type ToolClient, toolClients } from "../../support/mcp/tool-clients.ts";

afterAll(leaveBrowser);

const [ann, ben] = accountsThere;
const simple = "This is a simple text response for testing.";

test.each(Object.entries(toolClients))("%s", async (_, client) => {
  await using world = await startPeopleWorld();
  await using ada = await world.join("ann", ["new", "program", "notes"]);
  await client.signIn(ada.place);
  console.log(await client.tools(ada.place, "new_test_simple_text"));
  console.log(await client.call(ada.place, "new_test_simple_text"));
  console.log(await client.call(ada.place, "program_test_simple_text"));
  console.log(await client.call(ada.place, "notes_whoami").catch(String));
  await ada.connect(ann);
  console.log(await client.call(ada.place, "notes_whoami"));
  world.clock.shift(3_700);
  console.log(await client.call(ada.place, "notes_whoami"));
  console.log("refreshed there", world.notes.refreshes());
  await ada.removeAccess();
  console.log(await client.tools(ada.place, "new_test_simple_text").catch(String));
  console.log(await client.call(ada.place, "notes_whoami").catch(String));
  void ben;
  void simple;
  void nameInCodex;
});
