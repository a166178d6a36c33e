// A gateway with a model, MCP servers of each kind, and people of one account who may use different ones of them.
import { ensureDashboard } from "../../../scripts/setup.mjs";
import { makeProgramHome, type ProgramHome } from "../agents/agent-program.ts";
import { type ScriptedWorld, startAgentWorld } from "../agents/agent-world.ts";
import { type Browser, invite, setUp } from "../browser.ts";
import { operator } from "../browser-world.ts";
import { openVisitor, type Visitor } from "../chromium.ts";
import { type DocumentHost, startDocumentHost } from "../client-documents.ts";
import { type ShiftedClock, shiftedClock } from "../manual-clock.ts";
import { type AskingServer, startAskingServer } from "./asking-server.ts";
import { makeEverythingServer } from "./everything-server.ts";
import { startMcpServer } from "./mcp-server.ts";
import { stdioServer } from "./stdio-server.ts";
import type { ClientPlace } from "./tool-clients.ts";
import { toolsYaml } from "./tool-world.ts";

/** A member with a key for an agent, a client of tools in a home of its own, and a browser in which nobody is signed in yet. */
export interface ToolPerson extends AsyncDisposable {
  place: ClientPlace & { home: ProgramHome };
  visitor: Visitor;
  /** Signs in, where the page of now asks for it, and allows the client what it is asked for. */
  allow(): Promise<void>;
  /** Asks as pages of the dashboard do. */
  handler: Browser;
  /** Connects the account of that name at the server that tells who asked; `at`: where a program said that it is done. */
  connect(account: string, at?: string): Promise<void>;
  /** Takes back, in the browser, what was allowed the client. */
  removeAccess(): Promise<void>;
}

export interface PeopleWorld extends AsyncDisposable {
  model: ScriptedWorld;
  clock: ShiftedClock;
  /** The authorization server of `notes`, and what it was asked. */
  notes: AskingServer;
  /** Describes clients by documents; the gateway trusts it alone. */
  documents: DocumentHost;
  owner: Browser;
  /** Invites somebody, and has them use the tools of that list alone. */
  join(name: string, tools: readonly string[]): Promise<ToolPerson>;
}

const offered = ["test_simple_text", "test_tool_with_progress", "test_elicitation"];

/** Servers are `new` (2026-07-28 alone), `old` (with sessions alone), `program` (a process) and `notes` (people's own accounts). */
export async function startPeopleWorld(yaml = ""): Promise<PeopleWorld> {
  ensureDashboard();
  const newer = startMcpServer(makeEverythingServer, { eras: "modern" });
  const older = startMcpServer(makeEverythingServer, { eras: "legacy" });
  const notes = startAskingServer();
  const documents = startDocumentHost();
  const clock = shiftedClock();
  const servers = toolsYaml([
    { name: "new", url: newer.url, tools: offered },
    { name: "old", url: older.url, tools: offered },
    { name: "program", command: [...stdioServer], tools: ["test_simple_text", "silence"] },
    { name: "notes", url: notes.url, oauth: {} },
  ]);
  const documentFetch = { resolve: documents.resolve, ca: documents.ca, timeoutMs: 1_000 };
  const model = await startAgentWorld("each API natively", { yaml: servers + yaml, clock, documentFetch });
  const owner = await setUp(model.server, { person: operator });
  return {
    ...{ model, clock, notes, documents, owner },
    join: (name, tools) => join({ model, documents, owner }, name, tools),
    async [Symbol.asyncDispose]() {
      await model[Symbol.asyncDispose]();
      await Promise.all([newer, older, notes].map((one) => one[Symbol.asyncDispose]()));
      documents[Symbol.dispose]();
    },
  };
}

async function join(
  { model, documents, owner }: Pick<PeopleWorld, "model" | "documents" | "owner">,
  name: string,
  tools: readonly string[],
): Promise<ToolPerson> {
  const { server, upstream } = model;
  const person = { email: `${name}@example.test`, name, password: `the password of ${name}` };
  const handler = await invite(owner, { person });
  const { data } = (await owner.ask("/v1/members")) as { data: { id: string; email: string }[] };
  const member = data.find((one) => one.email === person.email);
  await owner.ask(`/v1/members/${member?.id}`, { method: "PATCH", body: { tools } });
  const { key } = await handler.ask("/v1/keys", {
    method: "POST",
    body: { name: "agent", scopes: ["chat:write", "tools:use"] },
  });
  const visitor = await openVisitor({ at: server.url });
  const home = makeProgramHome();
  const redirect_uris = ["http://localhost/callback", "http://127.0.0.1/callback"];
  const document = documents.document("/claude-code.json", { client_name: "Claude Code", redirect_uris });
  const enter = async () => {
    if (!visitor.path().startsWith("/sign-in")) return;
    await visitor.fill({ "E-mail address": person.email, Password: person.password });
    await visitor.press("Sign in");
  };
  const allow = async () => {
    await enter();
    await visitor.press("Allow");
    await visitor.page.waitForURL((now) => now.origin !== server.url);
  };
  return {
    ...{ visitor, handler, allow },
    place: {
      ...{
        home,
        document,
        url: `${server.url}/mcp`,
        model: { upstream, server: { baseUrl: server.baseUrl, key: String(key) } },
      },
      async visit(url) {
        await visitor.page.goto(url);
        await allow();
      },
    },
    async connect(account, at = "/tools") {
      await visitor.go(at);
      await enter();
      await visitor.page.getByRole("button", { name: "Connect your account: notes" }).click();
      await visitor.page.getByText(`Continue as ${account}`).click();
      await visitor.page.getByText("Your account is connected").waitFor();
    },
    async removeAccess() {
      await visitor.go("/settings");
      await enter();
      await visitor.page.locator("summary", { hasText: "Remove access" }).click();
      await visitor.press("Yes, remove access");
      await visitor.page.waitForURL("**/settings?done=app");
    },
    async [Symbol.asyncDispose]() {
      await visitor[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}
