// Clients of tools as their makers publish them, signed in by OAuth in a real browser: each lists and calls.
import { afterAll, expect, test } from "bun:test";
import { makeProgramHome } from "../../support/agents/agent-program.ts";
import { startAgentWorld } from "../../support/agents/agent-world.ts";
import { leaveBrowser, openVisitor } from "../../support/chromium.ts";
import { accountsThere, startAskingServer } from "../../support/mcp/asking-server.ts";
import { toolClients } from "../../support/mcp/tool-clients.ts";

afterAll(leaveBrowser);

test.each(Object.entries(toolClients))(
  "calls tools as the signed-in person without a gateway: %s",
  async (_, client) => {
    await using model = await startAgentWorld("each API natively");
    await using there = startAskingServer();
    await using home = makeProgramHome();
    await using visitor = await openVisitor({ at: there.origin });
    const [, ben] = accountsThere;
    const place = {
      ...{ home, model, url: there.url },
      async visit(url: string) {
        await visitor.page.goto(url);
        await visitor.page.getByText(`Continue as ${ben}`).click();
      },
    };
    await client.signIn(place);
    const names = await client.tools(place, "whoami");
    expect(names.map((name) => name.replace("_", "-"))).toEqual(["whoami", "write-note"]);
    expect(await client.call(place, "whoami")).toContain(`whoami was asked by ${ben}.`);
    expect(await client.call(place, "write-note")).toContain(`write-note was asked by ${ben}.`);
    expect(new Set(there.calls.map(({ person }) => person))).toEqual(new Set([ben]));
  },
);
