// Compares the tool definitions of MCP servers with the approved ones, because models trust tool descriptions.
import type { Clock } from "../../base/clock.ts";
import { fieldError, GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { shown } from "../../base/text/shown.ts";
import type { Principal } from "../../domain/principal.ts";
import { actorOf } from "../../domain/principal.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import type {
  DefinitionGuard,
  DefinitionPage,
  DefinitionState,
  DefinitionStore,
  ToolDefinition,
} from "../../domain/tools/tool-definition.ts";
import { aboutInstallation, auditEvent, type Origin } from "../../policy/records/audit.ts";
import { appearanceOf, isPlainName } from "./definition-names.ts";
import { decided, digestOf, type Judged, judge, nothingSeen, seenOf } from "./definition-record.ts";
import { originOf } from "./server-values.ts";

export interface DefinitionsOptions {
  store: DefinitionStore;
  /** Finds the id of a server's node, because another machine may have the node's name later. */
  nodes: Pick<ToolNodes, "find">;
  /** Called after a decision, to notify other replicas. */
  announce(): void;
  clock: Pick<Clock, "nowSeconds" | "monotonicMs">;
  log: Log;
}

type Kind = ToolDefinition["kind"];
type Json = Readonly<Record<string, unknown>>;

/** The server settings that decide which definitions are offered. */
type GuardedServer = Pick<McpServer, "name" | "approval" | "place" | "credentials">;

/** A list from a server: the tools, the prompts or the instructions. */
interface Listed {
  readonly server: GuardedServer;
  readonly origin: string;
  readonly kind: Kind;
}

/** The approval records of a server, by kind and name. */
interface Known {
  readonly all: Map<string, ToolDefinition>;
  /** Number of changes in this process, so that cached results can be recognized as outdated. */
  changes: number;
}

interface Read {
  readonly known: Promise<Known>;
  readonly untilMs: number;
}

/** The approved items of a list, and the state for which they were determined. */
interface Offer {
  readonly known: Known;
  readonly changes: number;
  readonly approval: McpServer["approval"];
  readonly origin: string;
  readonly offered: readonly Json[];
}

/**
 * Milliseconds after which records are read again, because other replicas may have changed them. Operators' decisions
 * are announced at once.
 */
const knownMs = 10_000;

const otherThan: Readonly<Record<Kind, readonly Kind[]>> = { tool: ["prompt"], prompt: ["tool"], instructions: [] };
/** Name of the record that says that a list was empty. No tool or prompt has this name. */
const nothingName = "";
/**
 * Maximum rows per query of a search. SQLite blocks the thread that serves requests, so the search pauses between
 * queries.
 */
const batch = 250;
/** Maximum records of one server. */
const maxOfServer = 5_000;
const maxCharacters = 256 * 1024;
/** Maximum characters of all definitions of a server, which stay in memory while it is used. */
const maxCharactersOfServer = 16 * 1024 * 1024;

export class Definitions implements DefinitionGuard {
  readonly #options: DefinitionsOptions;
  /** Records in memory, by server. */
  readonly #read = new Map<string, Read>();
  /** Approved items of each list, so that a list is not compared again for each call. */
  readonly #offers = new WeakMap<readonly Json[], Offer>();
  readonly #listeners = new Set<() => void>();

  constructor(options: DefinitionsOptions) {
    this.#options = options;
  }

  async offered(server: GuardedServer, kind: Kind, listed: readonly Json[], lacks = false): Promise<readonly Json[]> {
    const { approval } = server;
    const known = await this.#of(server.name);
    const before = this.#offers.get(listed);
    const origin = this.#originOf(server.place);
    const holds =
      before?.known === known &&
      before.changes === known.changes &&
      before.approval === approval &&
      before.origin === origin;
    if (holds) return before.offered;
    const offered = await this.#compare(known, { server, origin, kind, listed, lacks });
    this.#offers.set(listed, { known, changes: known.changes, approval, origin, offered });
    return offered;
  }

  async #compare(
    known: Known,
    { server, origin, kind, listed, lacks }: Listed & { listed: readonly Json[]; lacks: boolean },
  ): Promise<readonly Json[]> {
    const { all } = known;
    // The first list of tools, and the first list of prompts, is approved without a decision, unless the server's
    // setting requires approval of each definition.
    const isNew = (one: Kind) => all.values().every((definition) => definition.kind !== one);
    const isFirst = server.approval !== "each" && isNew(kind);
    const isApproved = isFirst || server.approval === "all";
    let characters = all.values().reduce((sum, { seen }) => sum + seen.length, 0);
    const shownNames = new Set<string>();
    const changed: ToolDefinition[] = [];
    const offered = listed.filter((item) => {
      const { name } = item;
      if (typeof name !== "string" || !isPlainName(name) || shownNames.has(appearanceOf(name))) return false;
      // Only the first of several names that look alike is offered.
      shownNames.add(appearanceOf(name));
      const judged = this.#judge(all, { server, origin, kind }, name, item, isApproved);
      if (!judged) return false;
      const { state, record } = judged;
      if (!record) return state === "approved";
      characters += record.seen.length - (all.get(keyOf(kind, name))?.seen.length ?? 0);
      if (characters > maxCharactersOfServer) return false;
      changed.push(record);
      return state === "approved";
    });
    // Record an empty list too, so that items that are added later count as changes.
    const without = [...(changed.length === 0 ? [kind] : []), ...(lacks ? otherThan[kind] : [])].filter(isNew);
    const seenAt = this.#options.clock.nowSeconds();
    for (const one of without) changed.push(nothingSeen({ server: server.name, kind: one, name: nothingName, seenAt }));
    if (changed.length > 0) await this.#keep(known, changed);
    return offered;
  }

  /** Returns the number of definitions that await approval, by server. */
  waiting(): Promise<ReadonlyMap<string, number>> {
    return this.#options.store.countWaiting();
  }

  /** Returns a page of a server's latest definitions. `search` has words of the name, title or description. */
  async page(server: string, { search, ...page }: DefinitionPage & { search: string }): Promise<ToolDefinition[]> {
    const { store } = this.#options;
    if (search === "") return await store.pageDefinitions(server, page);
    const words = search.toLowerCase().split(/\s+/);
    const found: ToolDefinition[] = [];
    for (let { after } = page; ; ) {
      const some = await store.pageDefinitions(server, { ...page, after, limit: batch });
      found.push(...some.filter((one) => hasWords(one, words)));
      if (some.length < batch || found.length >= page.limit) return found.slice(0, page.limit);
      after = some.at(-1);
      await new Promise(setImmediate);
    }
  }

  /**
   * Approves or refuses the latest definition. Rejects with `not_found`, or with `invalid_request` if `digest` is not
   * that of the latest definition.
   */
  async decide(
    principal: Principal,
    {
      server,
      kind,
      name,
      digest,
      state,
    }: {
      server: Pick<McpServer, "name" | "credentials">;
      kind: Kind;
      name: string;
      digest: string;
      state: "approved" | "refused";
    },
    origin: Origin,
  ): Promise<ToolDefinition> {
    const found = await this.#options.store.findDefinition(server.name, { kind, name });
    if (!found) throw unseen(server.name, kind, name);
    if (digestOf(found.seen) !== digest) throw changedMeanwhile();
    const by = { decidedAt: origin.nowSeconds, decidedBy: actorOf(principal).id };
    const definition = decided(found, { state, isPersonal: isPersonalServer(server), ...by });
    const detail = { kind, name, decision: state, digest };
    const event = auditEvent("tool.decided", principal, origin, aboutInstallation(server.name, detail));
    if (!(await this.#options.store.decide(definition, found.seen, event))) throw changedMeanwhile();
    this.#read.delete(server.name);
    this.#notify();
    this.#options.announce();
    return definition;
  }

  /** Deletes the cached records of a deleted server, because a new one may get its name. */
  forget(server: string): void {
    this.#read.delete(server);
  }

  /** Reads the records again, because another process may have changed them. Notifies listeners of changes. */
  async reload(): Promise<void> {
    let isChanged = false;
    for (const [server, { known }] of [...this.#read]) {
      const again = this.#keepRead(server, known);
      if ((await again) !== (await known.catch(() => undefined))) isChanged = true;
    }
    if (isChanged) this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Calls `listener` after each decision in any process. Returns a function that unsubscribes. */
  onDecision(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the states of listed items and records nothing. `new`: the item is in no record. */
  async statesOf(server: GuardedServer, kind: Kind, listed: readonly Json[]): Promise<(DefinitionState | "new")[]> {
    const { all } = await this.#of(server.name);
    const origin = this.#originOf(server.place);
    return listed.map((item) => {
      const name = String(item["name"]);
      if (!all.has(keyOf(kind, name))) return "new";
      return this.#judge(all, { server, origin, kind }, name, item, false)?.state ?? "changed";
    });
  }

  /** Returns the server's origin. For a node it contains the node's id, because another machine may get its name. */
  #originOf(place: McpServer["place"]): string {
    if (place.kind !== "node") return originOf(place);
    return originOf({ ...place, nodeId: this.#options.nodes.find(place.nodeId)?.id ?? place.nodeId });
  }

  #of(server: string): Promise<Known> {
    const { clock } = this.#options;
    const read = this.#read.get(server);
    if (read && clock.monotonicMs() < read.untilMs) return read.known;
    return this.#keepRead(server, read?.known);
  }

  #keepRead(server: string, before: Promise<Known> | undefined): Promise<Known> {
    const known = this.#readAgain(server, before);
    this.#read.set(server, { known, untilMs: this.#options.clock.monotonicMs() + knownMs });
    known.catch(() => this.#read.delete(server));
    return known;
  }

  /** Reads the records. Returns the earlier object if nothing has changed, so that cached results stay valid. */
  async #readAgain(server: string, before: Promise<Known> | undefined): Promise<Known> {
    const definitions = await this.#options.store.listDefinitions(server);
    const all = new Map(definitions.map((one) => [keyOf(one.kind, one.name), one]));
    const known = await before?.catch(() => undefined);
    return known && Bun.deepEquals(known.all, all) ? known : { all, changes: 0 };
  }

  /**
   * Compares a definition with its record. Returns undefined if the definition is too long, or if the server has too
   * many records for a new one.
   */
  #judge(
    all: ReadonlyMap<string, ToolDefinition>,
    { server, origin, kind }: Listed,
    name: string,
    item: Json,
    isApproved: boolean,
  ): Judged | undefined {
    const before = all.get(keyOf(kind, name));
    const seen = seenOf(item, origin);
    const isTooMuch = seen.length > maxCharacters || (!before && all.size >= maxOfServer);
    if (isTooMuch && before?.seen !== seen) return undefined;
    const nowSeconds = this.#options.clock.nowSeconds();
    const isPersonal = isPersonalServer(server);
    return judge(before, { server: server.name, kind, name, seen, isApproved, isPersonal, nowSeconds });
  }

  async #keep(known: Known, changed: readonly ToolDefinition[]): Promise<void> {
    await this.#options.store.putSeen(changed);
    known.changes++;
    for (const one of changed) {
      known.all.set(keyOf(one.kind, one.name), one);
      if (one.state === "approved") continue;
      this.#options.log.warn("tool_waits_for_approval", {
        server: one.server,
        kind: one.kind,
        tool: one.name,
        state: one.state,
      });
    }
  }
}

function keyOf(kind: Kind, name: string): string {
  return `${kind} ${name}`;
}

/** Reports whether the server may report different definitions to different users. */
function isPersonalServer({ credentials }: Pick<McpServer, "credentials">): boolean {
  return credentials.kind === "person";
}

function hasWords({ name, seen }: ToolDefinition, words: readonly string[]): boolean {
  const { title, description } = JSON.parse(seen) as Json;
  const searchedText = [name, title, description]
    .filter((text) => typeof text === "string")
    .join("\n")
    .toLowerCase();
  return words.every((word) => searchedText.includes(word));
}

function unseen(server: string, kind: Kind, name: string): GatewayError {
  const message = `The MCP server ${server} was not seen to have the ${kind} ${shown(name)}. GET /v1/admin/tool-servers/${server}/definitions lists what it has.`;
  return new GatewayError("not_found", message);
}

function changedMeanwhile(): GatewayError {
  return fieldError("digest", "must be of what the server says now: it says something else by now. Look at it again.");
}
