// The choice of the tools that an app may use: the MCP servers in the page and in its form.
import type { PublishedApp } from "../../../domain/people/app.ts";
import { commandLineAppId } from "../../../domain/people/app.ts";
import type { Authorization } from "../../../domain/people/oauth.ts";
import { membershipCredentialId, type OwnMembership } from "../../../domain/people/person.ts";
import type { KeyStore } from "../../../domain/principal.ts";
import type { Scope } from "../../../domain/scope.ts";
import type { McpServer, McpServers } from "../../../domain/tools/mcp-server.ts";
import { allowsServer } from "../../../domain/tools/tool-access.ts";
import { mayUseServer } from "../../../domain/tools/usable-server.ts";
import { apiResource, toolsResource } from "../../../policy/credentials/resources.ts";
import { type Html, html } from "../html.ts";
import { plainName } from "./plain-name.ts";

export interface ToolChoice {
  servers: readonly ChoosableServer[];
  /** Whether the choice of all servers, including later ones, is possible. */
  mayBeAll: boolean;
  /** Whether fewer than all are chosen. */
  isSome: boolean;
}

interface ChoosableServer {
  name: string;
  /** The server's title, if the person may know it. */
  title: string | undefined;
  /** The list entries that this choice stands for: the server's name, or the tools of it that were allowed before. */
  entries: readonly string[];
  isChosen: boolean;
}

export interface ToolChoiceDeps {
  mcpServers: Pick<McpServers, "all">;
  keys: Pick<KeyStore, "findChainById">;
}

interface Asking {
  app: PublishedApp;
  scopes: readonly Scope[];
  /** The paths of the resources that the app wants to use. */
  resources: readonly string[];
  memberships: readonly OwnMembership[];
  /** The list that was allowed before. */
  before: Authorization["tools"];
}

/** The most servers on a page. Others are chosen in the dashboard. */
const maxServers = 100;

/**
 * Returns the choice; undefined if there is none to make: the app uses no tools, or it is the person's own command line
 * tool. A server named by the request can be chosen whether it exists or not, so that nobody learns which exist.
 */
export async function toolChoice(asking: Asking, deps: ToolChoiceDeps): Promise<ToolChoice | undefined> {
  const { app, scopes, resources, before } = asking;
  if (!scopes.includes("tools:use") || app.id === commandLineAppId) return undefined;
  const usable = await usableServers(asking, deps);
  const named = resources.includes(toolsResource)
    ? []
    : resources.flatMap((path) => (path === apiResource ? [] : [path.slice(toolsResource.length + 1)]));
  const names = named.length > 0 ? named : usable.map(({ name }) => name);
  const servers = names.slice(0, maxServers).map((name) => {
    const narrower = before?.includes(name) ? [] : (before ?? []).filter((entry) => entry.startsWith(`${name}/`));
    return {
      name,
      title: usable.find((server) => server.name === name)?.title ?? undefined,
      entries: narrower.length > 0 ? narrower : [name],
      isChosen: before ? allowsServer({ lists: [before] }, name) : named.length > 0,
    };
  });
  return { servers, mayBeAll: named.length === 0, isSome: before !== null };
}

/**
 * Returns the servers that the person may use in any of the accounts and that the app may have, in the order of their
 * names.
 */
async function usableServers(
  { app, memberships }: Asking,
  { mcpServers, keys }: ToolChoiceDeps,
): Promise<readonly McpServer[]> {
  const servers = mcpServers.all();
  if (servers.length === 0) return [];
  const parties = await Promise.all(
    memberships.map(async ({ id }) => {
      const chain = await keys.findChainById(membershipCredentialId(id, app.environment));
      if (!chain) return [];
      const lists = [...chain.keys, chain.account, app].flatMap(({ tools }) => (tools ? [tools] : []));
      return [{ account: chain.account, environment: app.environment, tools: { lists } }];
    }),
  );
  return servers
    .filter((server) => parties.flat().some((party) => mayUseServer(server, party)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the choice as the person sent it. */
export function asSent(choice: ToolChoice | undefined, sent: ReadonlyMap<string, string>): ToolChoice | undefined {
  if (!choice) return undefined;
  const servers = choice.servers.map((server) => ({ ...server, isChosen: sent.has(fieldOf(server.name)) }));
  return { ...choice, servers, isSome: sent.get("tools") === "some" };
}

/** Returns the form's choice as the list of the grant; `fault` if nothing was chosen. */
export function chosenTools(
  choice: ToolChoice | undefined,
  fields: ReadonlyMap<string, string>,
): { tools: Authorization["tools"] } | { fault: string } {
  if (!choice || (choice.mayBeAll && fields.get("tools") !== "some")) return { tools: null };
  const [only] = choice.servers;
  // If only one server was requested, allowing the app chooses this server.
  if (only && isSettled(choice)) return { tools: [...only.entries] };
  const chosen = choice.servers.filter(({ name }) => fields.has(fieldOf(name)));
  if (chosen.length === 0) return { fault: "Choose at least one server, or deny access." };
  return { tools: chosen.flatMap(({ entries }) => entries) };
}

export function toolChoiceFields(choice: ToolChoice | undefined, fault: string | undefined): Html | undefined {
  if (!choice) return undefined;
  const { servers, mayBeAll, isSome } = choice;
  const [only] = servers;
  if (!only) return html`<p>This app can use the tools of <strong>every server</strong> that you may use here.</p>`;
  if (isSettled(choice)) return html`<p>This app can use only the tools of ${wordsFor(only)}.</p>`;
  const boxes = servers.map(
    (server) => html`
<label><input type="checkbox" name="${fieldOf(server.name)}" value="on"${server.isChosen && html` checked`}> <span>${wordsFor(server)}</span></label>`,
  );
  const alert = fault !== undefined && html`<span class="error" id="tools-fault" role="alert">${fault}</span>`;
  return html`<fieldset class="tools"${alert && html` aria-describedby="tools-fault"`}>
<legend>Tools that this app can use</legend>
${
  mayBeAll &&
  html`<label><input type="radio" name="tools" value="all"${!isSome && html` checked`}> <span><strong>Every server</strong> that you may use here, now and later</span></label>
<label><input type="radio" name="tools" value="some"${isSome && html` checked`}> <span>Selected servers</span></label>`
}
<div class="servers">${boxes}
</div>
${alert}</fieldset>`;
}

function isSettled({ mayBeAll, servers }: ToolChoice): boolean {
  return !mayBeAll && servers.length === 1;
}

function fieldOf(name: string): string {
  return `server:${name}`;
}

function wordsFor({ name, title, entries }: ChoosableServer): Html {
  const tools = entries.filter((entry) => entry !== name).map((entry) => entry.slice(name.length + 1));
  return html`<strong>${name}</strong>${title !== undefined && html` (<bdi>${plainName(title)}</bdi>)`}${tools.length > 0 && html`: ${tools.join(", ")}`}`;
}
