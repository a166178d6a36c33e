// Tests an MCP server, even before it is added. Nothing is recorded.

import type { Clock } from "../../base/clock.ts";
import { fieldError, GatewayError } from "../../base/errors.ts";
import type { Principal } from "../../domain/principal.ts";
import { redactCredentials, redactSecrets } from "../../domain/redaction.ts";
import type { ClientSession, ToolCaller } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { Turns } from "../../policy/turns.ts";
import type { McpServerTestRequest, McpServerTestWire } from "../../wire/tools/mcp-servers.ts";
import { ServerLists } from "../server/server-lists.ts";
import type { Definitions } from "./definitions.ts";
import type { ManagedServers } from "./managed-servers.ts";
import { type FindNode, locationOf, newServer } from "./server-values.ts";

/** A session with an MCP server for a single test. */
export interface SeparateLink {
  open(): Promise<ClientSession>;
  /** Returns the last lines that the process wrote to standard error, without secrets. */
  output(): readonly string[];
  end(): void;
}

export interface ServerTestsOptions {
  servers: Pick<ManagedServers, "known" | "requireReadable">;
  definitions: Pick<Definitions, "statesOf">;
  findNode: FindNode;
  separateLink(server: McpServer, caller: ToolCaller): SeparateLink;
  clock: Clock;
}

/** Maximum running and maximum waiting tests. A test takes at most twice the timeout, including the wait. */
const [maxAtOnce, maxWaiting] = [4, 4];
const patienceMs = 20_000;
const [maxTools, maxCapabilities, maxLines, maxCharacters] = [1_000, 100, 50, 2_000];
/** Name of a server that is tested before it is added. */
const unnamed = "new";

export class ServerTests {
  readonly #options: ServerTestsOptions;
  readonly #turns = new Turns(maxAtOnce, maxWaiting);

  constructor(options: ServerTestsOptions) {
    this.#options = options;
  }

  /** Runs a test. An error of the server is a part of the result; the call does not reject. */
  async run(principal: Principal, request: McpServerTestRequest): Promise<McpServerTestWire> {
    requireOperator(principal);
    const server = await this.#serverOf(request);
    const isKnown = request.name !== undefined;
    return await this.#turns.runOrRefuse(
      () => this.#ask(server, principal, isKnown),
      "Too many MCP servers are being tested at once.",
    );
  }

  async #serverOf(request: McpServerTestRequest): Promise<McpServer> {
    const { name, url, node, headers, protocol_version } = request;
    const { servers, findNode } = this.#options;
    if (name !== undefined) {
      for (const [member, value] of Object.entries({ url, node, headers })) {
        if (value !== undefined)
          throw fieldError(member, "is for a server that is tested without a name. Leave it out.");
      }
      servers.requireReadable(name);
      const known = servers.known(name);
      const protocolVersion = protocol_version === undefined ? (known.protocolVersion ?? null) : protocol_version;
      return { ...known, protocolVersion, enabled: true };
    }
    const place = await locationOf({ url, node }, findNode);
    if (!place) throw fieldError("name", "give either name, of a server that there is, or url, or node.");
    return newServer({ name: unnamed, headers, protocol_version }, place);
  }

  async #ask(server: McpServer, principal: Principal, isKnown: boolean): Promise<McpServerTestWire> {
    const { clock, separateLink } = this.#options;
    const sinceMs = clock.monotonicMs();
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const error = new GatewayError(
        "upstream_timeout",
        `The server did not say what it has within ${patienceMs / 1_000} s.`,
      );
      reject(error);
    }, patienceMs);
    const link = separateLink(server, { principal });
    const secrets = secretsOf(server);
    const safe: Safe = (text) => redactSecrets(text, secrets).slice(0, maxCharacters).toWellFormed();
    let seen: Seen = nothing;
    const onSeen = (more: Partial<Seen>) => {
      seen = { ...seen, ...more };
    };
    let error: McpServerTestWire["error"] = null;
    try {
      await Promise.race([late, this.#inspect(link, { server, isKnown, safe, onSeen })]);
    } catch (fault) {
      error = errorOf(fault, safe);
    } finally {
      clearTimeout(timer);
      link.end();
    }
    const output = link.output().slice(-maxLines).map(safe);
    const durationMs = Math.round(clock.monotonicMs() - sinceMs);
    return { object: "tool_server.test", ok: error === null, error, ...seen, output, duration_ms: durationMs };
  }

  /** Adds each finding to the result as soon as it is known, so that earlier ones remain if a later step fails. */
  async #inspect(
    { open }: SeparateLink,
    {
      server,
      isKnown,
      safe,
      onSeen,
    }: { server: McpServer; isKnown: boolean; safe: Safe; onSeen(more: Partial<Seen>): void },
  ): Promise<void> {
    const { clock, definitions } = this.#options;
    const textOf = (value: unknown) => (typeof value === "string" ? safe(value) : null);
    const link = await open();
    const { name: itsName, title, version } = link.serverInfo;
    onSeen({
      revision: link.revision,
      server: { name: textOf(itsName), title: textOf(title), version: textOf(version) },
      instructions: textOf(link.instructions),
      capabilities: Object.keys(link.capabilities).slice(0, maxCapabilities).map(safe),
    });
    const lists = new ServerLists(clock);
    const shown = (await lists.of(link, "tools")).slice(0, maxTools);
    const states = isKnown ? await definitions.statesOf(server, "tool", shown) : [];
    const tools = shown.map((tool, index) => ({
      name: textOf(tool["name"]) ?? "",
      title: textOf(tool["title"]),
      description: textOf(tool["description"]),
      state: states[index] ?? "new",
    }));
    onSeen({ tools });
    onSeen({ prompts: (await lists.of(link, "prompts")).length });
    onSeen({ resources: (await lists.of(link, "resources")).length });
  }
}

/** Shortens a text and removes the server's secrets. */
type Safe = (text: string) => string;
type Seen = Omit<McpServerTestWire, "object" | "ok" | "error" | "output" | "duration_ms">;

const nothing: Seen = {
  ...{ revision: null, server: null, instructions: null, capabilities: [], tools: [] },
  ...{ prompts: 0, resources: 0 },
};

/** Returns all secrets that are sent to the server, because its texts may repeat them. */
function secretsOf({ credentials, place }: McpServer): string[] {
  const headers = credentials.kind === "headers" ? Object.values(credentials.headers) : [];
  const bare = headers.map((value) => value.replace(/^(?:Bearer|Basic) /i, ""));
  return [...headers, ...bare, ...(place.kind === "command" ? Object.values(place.env) : [])];
}

/**
 * Converts an error for the result, without credentials. A user's token is removed here, because `secretsOf` does not
 * know it.
 */
function errorOf(fault: unknown, safe: Safe): McpServerTestWire["error"] {
  if (!(fault instanceof GatewayError)) throw fault;
  const { code, message, detail } = fault;
  const said = (text: string) => safe(redactCredentials(text));
  return { code, message: said(message), detail: detail === undefined ? null : said(detail) };
}
