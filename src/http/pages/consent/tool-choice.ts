// The part of a consent page in which a person chooses the MCP servers that an app may use.
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
  /** True if the person can choose all servers at once, including servers that are added later. */
  mayBeAll: boolean;
  /** True if the current choice is limited to some servers. */
  isSome: boolean;
}

interface ChoosableServer {
  name: string;
  /** The server's title. Undefined if it has none, or if the person may not use the server. */
  title: string | undefined;
  /**
   * The tool entries that are granted by choosing the server: the whole server, or those of its tools that were granted
   * before.
   */
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
  /** Paths of the resources that the app's request names (RFC 8707). */
  resources: readonly string[];
  memberships: readonly OwnMembership[];
  /** The tools that were granted before. */
  before: Authorization["tools"];
}

/** Maximum servers on a page. Further servers can be granted in the dashboard. */
const maxServers = 100;

/**
 * Returns the choice of servers. Returns undefined if the app uses no tools, or is the gateway's own command line tool.
 * A server that the request names is offered even if it does not exist, so that the page does not reveal which servers
 * exist.
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

/** Returns the servers that the app may get and that the person may use in at least one account, sorted by name. */
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

/** Returns the choice with the selection that the form contains. */
export function asSent(choice: ToolChoice | undefined, sent: ReadonlyMap<string, string>): ToolChoice | undefined {
  if (!choice) return undefined;
  const servers = choice.servers.map((server) => ({ ...server, isChosen: sent.has(fieldOf(server.name)) }));
  return { ...choice, servers, isSome: sent.get("tools") === "some" };
}

/** Returns the tools chosen in the form, or `fault` if none is chosen. */
export function chosenTools(
  choice: ToolChoice | undefined,
  fields: ReadonlyMap<string, string>,
): { tools: Authorization["tools"] } | { fault: string } {
  if (!choice || (choice.mayBeAll && fields.get("tools") !== "some")) return { tools: null };
  const [only] = choice.servers;
  // If the app requested only one server, there is nothing to choose.
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
