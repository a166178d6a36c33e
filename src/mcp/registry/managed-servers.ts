// The current MCP servers: those in headrace.yaml, and those in the database, which operators add, change and delete.
import { fieldError, forbidden, GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { shown } from "../../base/text/shown.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import type { Keys } from "../../domain/key-ring.ts";
import type { Principal } from "../../domain/principal.ts";
import type { McpServer, McpServers, ServerLocation, ToolCredentials } from "../../domain/tools/mcp-server.ts";
import type { McpServerStore, StoredMcpServer } from "../../domain/tools/mcp-server-store.ts";
import { mcpServerContext } from "../../domain/tools/server-rules.ts";
import type { StoredToolConnection } from "../../domain/tools/tool-connection.ts";
import { seal, unseal } from "../../policy/credentials/sealing.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { aboutInstallation, auditEvent, changedMembers, type Origin } from "../../policy/records/audit.ts";
import { Turns } from "../../policy/turns.ts";
import type { CreateMcpServerRequest, McpServerWire, UpdateMcpServerRequest } from "../../wire/tools/mcp-servers.ts";
import { changedServer, type FindNode, locationOf, newServer, originOf } from "./server-values.ts";
import { settingsToWire } from "./server-view.ts";

export interface ManagedServersOptions {
  /** Returns the servers in headrace.yaml; a new array after each change of the file. */
  file(): readonly McpServer[];
  store: McpServerStore;
  /** Keys of 32 bytes. */
  sealingKey: Keys;
  findNode: FindNode;
  /** Returns the number of definitions that await approval, by server. */
  waiting(): Promise<ReadonlyMap<string, number>>;
  /** Called after a committed change, to notify other replicas. */
  announce(): void;
  /** Called after a committed change that deleted users' connections. */
  ended(connections: readonly StoredToolConnection[]): void;
  log: Log;
}

const maxServers = 100;
const maxWaitingChanges = 32;
/** Maximum attempts of a change while other processes change the same server. */
const maxTries = 10;
const tooMany = "Too many MCP servers are being changed at once.";

/** A server from the database, with its credentials decrypted. */
interface Opened {
  readonly stored: StoredMcpServer;
  readonly server: McpServer;
  /** True if the credentials cannot be decrypted, or were deleted. */
  readonly isUnreadable: boolean;
}

export class ManagedServers implements McpServers {
  readonly #options: ManagedServersOptions;
  /** Changes run one at a time, because each depends on the result of the previous one. */
  readonly #changes = new Turns(1, maxWaitingChanges);
  readonly #listeners = new Set<() => void>();
  #file: readonly McpServer[];
  #opened: readonly Opened[] = [];
  #all: readonly McpServer[];

  constructor(options: ManagedServersOptions) {
    this.#options = options;
    this.#file = options.file();
    this.#all = this.#file;
  }

  all(): readonly McpServer[] {
    const file = this.#options.file();
    if (file !== this.#file) this.#use(file, this.#opened);
    return this.#all;
  }

  find(name: string): McpServer | undefined {
    return this.all().find((server) => server.name === name);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads the servers from the database. Waits for running changes, so that an older read does not undo them. */
  load(): Promise<void> {
    return this.#inTurn(() => this.#read());
  }

  /** Lists all servers, beginning with those of headrace.yaml. */
  async list(): Promise<McpServerWire[]> {
    const waiting = await this.#options.waiting();
    return this.all().map((server) => this.#toWire(server, waiting));
  }

  /** Returns a server. Rejects with `not_found`. */
  async get(name: string): Promise<McpServerWire> {
    return this.#toWire(this.known(name), await this.#options.waiting());
  }

  /** Throws `not_found`. */
  known(name: string): McpServer {
    const server = this.find(name);
    if (server) return server;
    throw unknownServer(name);
  }

  /** Throws `invalid_request` if the credentials cannot be decrypted: without them the server must not be called. */
  requireReadable(name: string): void {
    if (!this.#openedOf(name)?.isUnreadable || this.find(name)?.isDeclared) return;
    throw invalidRequest(
      `name: the credentials of ${name} were sealed under a secret that is not accepted any more. Give it its headers or oauth again with PATCH /v1/admin/tool-servers/${name}.`,
    );
  }

  /** Returns the servers of the database with their credentials, read again from there. */
  async stored(): Promise<{ server: McpServer; createdAt: number }[]> {
    await this.load();
    return this.#opened.map(({ server, stored: { enabled, createdAt } }) => ({
      server: { ...server, enabled },
      createdAt,
    }));
  }

  /**
   * Validates a complete declaration and returns the server that it describes. Rejects with `invalid_request`, and with
   * `permission_denied` if the configuration file already defines the server.
   */
  async declared(request: CreateMcpServerRequest): Promise<McpServer> {
    if (this.find(request.name)?.isDeclared) throw definedInFile(request.name);
    return newServer(request, await this.#placeOf(request));
  }

  async #placeOf(request: CreateMcpServerRequest): Promise<ServerLocation> {
    const place = await locationOf(request, this.#options.findNode);
    if (place) return place;
    throw fieldError("url", "is missing. Give a url, or a node with the name of the server there.");
  }

  async add(principal: Principal, request: CreateMcpServerRequest, origin: Origin): Promise<McpServerWire> {
    requireOperator(principal);
    const { store } = this.#options;
    const server = newServer(request, await this.#placeOf(request));
    await this.#decide(async () => {
      this.#requireNew(server.name);
      const stored = { ...this.#stored(server), createdAt: origin.nowSeconds };
      const event = this.#event("tool_server.created", principal, origin, server.name, settingsToWire(server));
      if (!(await store.insertMcpServer(stored, event))) return false;
      this.#open([...this.#opened.map((one) => one.stored), stored]);
      return true;
    });
    return await this.get(server.name);
  }

  async change(
    principal: Principal,
    name: string,
    request: UpdateMcpServerRequest,
    origin: Origin,
  ): Promise<McpServerWire> {
    requireOperator(principal);
    const { store, findNode, ended } = this.#options;
    const place = await locationOf(request, findNode);
    await this.#decide(async () => {
      const opened = this.#requireStored(name);
      const before = { ...opened.server, enabled: opened.stored.enabled };
      const server = changedServer(before, request, place ?? before.place);
      const detail = changeDetail(before, server);
      if (Object.keys(detail).length === 0 && !(opened.isUnreadable && server.credentials !== before.credentials))
        return true;
      const { createdAt } = opened.stored;
      const isKept = server.credentials === before.credentials && originOf(server.place) === originOf(before.place);
      const stored: StoredMcpServer = isKept
        ? { ...this.#stored(server), sealedCredentials: opened.stored.sealedCredentials, createdAt }
        : { ...this.#stored(server), createdAt };
      const event = this.#event("tool_server.changed", principal, origin, name, detail);
      const connections = endsConnections(before, server);
      const endedWithIt = await store.changeMcpServer(opened.stored, stored, { connections }, event);
      if (!endedWithIt) return false;
      ended(endedWithIt);
      this.#open(this.#opened.map((one) => (one === opened ? stored : one.stored)));
      return true;
    });
    return await this.get(name);
  }

  /** Deletes a server. Its running calls fail. */
  async remove(principal: Principal, name: string, origin: Origin): Promise<void> {
    requireOperator(principal);
    const { store, ended } = this.#options;
    await this.#decide(async () => {
      const opened = this.#openedOf(name) ?? this.#requireStored(name);
      const event = this.#event("tool_server.deleted", principal, origin, name, settingsToWire(opened.server));
      // If headrace.yaml has a server of the same name, the approval records stay.
      const keepsName = this.#file.some((server) => server.name === name);
      const endedWithIt = await store.deleteMcpServer(name, { keepsName }, event);
      if (!endedWithIt) return false;
      ended(endedWithIt);
      this.#open(this.#opened.flatMap(({ stored }) => (stored.name === name ? [] : [stored])));
      return true;
    });
  }

  #event(
    action: AuditEvent["action"],
    principal: Principal,
    origin: Origin,
    name: string,
    detail: AuditEvent["detail"],
  ): AuditEvent {
    return auditEvent(action, principal, origin, aboutInstallation(name, detail));
  }

  #openedOf(name: string): Opened | undefined {
    return this.#opened.find(({ stored }) => stored.name === name);
  }

  /** Returns a server from the database. Throws for a server of headrace.yaml, which cannot be changed here. */
  #requireStored(name: string): Opened {
    const { isDeclared } = this.known(name);
    const opened = this.#openedOf(name);
    if (opened && !isDeclared) return opened;
    throw definedInFile(name);
  }

  #requireNew(name: string): void {
    if (this.find(name)?.isDeclared) {
      throw fieldError(
        "name",
        `headrace.yaml has an MCP server ${name}; choose another name, or change that one in the file.`,
      );
    }
    if (this.#openedOf(name)) throw nameTaken(name);
    if (this.#opened.length < maxServers) return;
    throw invalidRequest(
      `There are ${maxServers} MCP servers already, which is the most that can be added here; delete one first.`,
    );
  }

  #stored({ credentials, isDeclared: _, ...server }: McpServer): Omit<StoredMcpServer, "createdAt"> {
    const sealedCredentials =
      credentials.kind === "none"
        ? null
        : seal(JSON.stringify(credentials), this.#options.sealingKey, contextOf(server));
    return { ...server, credentialKind: credentials.kind, sealedCredentials };
  }

  #open(stored: readonly StoredMcpServer[]): void {
    const before = this.#opened;
    const opened = stored.map((one) => {
      const known = before.find((other) => Bun.deepEquals(other.stored, one));
      return known ?? this.#openedFrom(one);
    });
    this.#use(
      this.#options.file(),
      opened.sort((a, b) => (a.stored.name < b.stored.name ? -1 : 1)),
    );
  }

  #openedFrom(stored: StoredMcpServer): Opened {
    const { credentialKind, sealedCredentials, createdAt: _, ...settings } = stored;
    const credentials = this.#credentialsOf(stored);
    const isUnreadable = credentials === undefined;
    if (isUnreadable) this.#options.log.error("tool_server_credentials_unreadable", { server: stored.name });
    const server: McpServer = {
      ...settings,
      // Without its credentials the server stays disabled, because requests would have another identity.
      enabled: settings.enabled && !isUnreadable,
      credentials: credentials ?? emptyCredentials[credentialKind],
      isDeclared: false,
    };
    return { stored, server, isUnreadable };
  }

  #credentialsOf(stored: StoredMcpServer): ToolCredentials | undefined {
    const { credentialKind, sealedCredentials } = stored;
    if (credentialKind === "none") return emptyCredentials.none;
    if (sealedCredentials === null) return undefined;
    try {
      return JSON.parse(unseal(sealedCredentials, this.#options.sealingKey, contextOf(stored))) as ToolCredentials;
    } catch {
      return undefined;
    }
  }

  #use(file: readonly McpServer[], opened: readonly Opened[]): void {
    const names = new Set(file.map(({ name }) => name));
    const all = [...file, ...opened.flatMap(({ server }) => (names.has(server.name) ? [] : [server]))];
    const isSame = all.length === this.#all.length && all.every((server, index) => server === this.#all[index]);
    this.#file = file;
    this.#opened = opened;
    this.#all = all;
    if (isSame) return;
    for (const listener of this.#listeners) listener();
  }

  /** Runs `change` again until it returns true. It returns false if another process changed the server meanwhile. */
  #decide(change: () => Promise<boolean>): Promise<void> {
    return this.#inTurn(async () => {
      for (let tries = 0; tries < maxTries; tries++) {
        await this.#read();
        if (await change()) return this.#options.announce();
      }
      throw new GatewayError("service_unavailable", `${tooMany} Retry in 1 s.`, { retryAfterSeconds: 1 });
    });
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    return this.#changes.runOrRefuse(change, tooMany);
  }

  async #read(): Promise<void> {
    this.#open(await this.#options.store.listMcpServers());
  }

  #toWire(server: McpServer, waiting: ReadonlyMap<string, number>): McpServerWire {
    const { name, isDeclared } = server;
    const opened = this.#openedOf(name);
    const own = isDeclared ? undefined : opened;
    return {
      ...{ object: "tool_server", name, ...settingsToWire(server) },
      ...{ source: isDeclared ? "file" : "database", overrides_database: isDeclared && opened !== undefined },
      credentials_unreadable: own?.isUnreadable ?? false,
      enabled: own?.stored.enabled ?? server.enabled,
      created_at: own?.stored.createdAt ?? null,
      waiting: waiting.get(name) ?? 0,
    };
  }
}

const emptyCredentials = {
  none: { kind: "none" },
  headers: { kind: "headers", headers: {} },
  person: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null },
} as const satisfies Record<ToolCredentials["kind"], ToolCredentials>;

/** Returns the name and origin for which the server's credentials are encrypted. */
function contextOf({ name, place }: Pick<McpServer, "name" | "place">): string {
  if (place.kind !== "http") throw new Error(`${place.kind} has no credentials`);
  return mcpServerContext({ name, url: place.url });
}

/** Returns the changed members for the audit log. Of secrets, only the fact of a change is recorded. */
function changeDetail(before: McpServer, after: McpServer): Record<string, unknown> {
  const detail: Record<string, unknown> = changedMembers(settingsToWire(before), settingsToWire(after));
  const [old, now] = [before.credentials, after.credentials];
  if (old.kind === "headers" && now.kind === "headers" && !Bun.deepEquals(old.headers, now.headers))
    detail["headers"] = "replaced";
  if (old.kind === "person" && now.kind === "person" && old.clientSecret !== now.clientSecret)
    detail["client_secret"] = now.clientSecret === null ? "removed" : "replaced";
  return detail;
}

/**
 * Reports whether users' connections must be deleted, because their tokens belong to the old server or OAuth client.
 */
function endsConnections(before: McpServer, after: McpServer): boolean {
  const [old, now] = [before.credentials, after.credentials];
  if (old.kind !== "person") return false;
  return now.kind !== "person" || now.clientId !== old.clientId || originOf(before.place) !== originOf(after.place);
}

function unknownServer(name: string): GatewayError {
  return new GatewayError(
    "not_found",
    `There is no MCP server ${shown(name)}. GET /v1/admin/tool-servers lists the servers.`,
  );
}

function definedInFile(name: string): GatewayError {
  return forbidden(
    `The MCP server ${name} is defined in headrace.yaml and read-only here: change it under \`tools.servers\` in that file.`,
  );
}

function nameTaken(name: string): GatewayError {
  return fieldError("name", `there is an MCP server ${name} already; PATCH /v1/admin/tool-servers/${name} changes it.`);
}
