// Holds servers to what they said of their tools when that was approved: a description is read by models as if it were ours.
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
import { isPlainName, lookOf } from "./definition-names.ts";
import { decided, digestOf, type Judged, judge, nothingSeen, seenOf } from "./definition-record.ts";
import { originOf } from "./server-values.ts";

export interface DefinitionsOptions {
  store: DefinitionStore;
  /** Tells which machine a server is at, of which its name says nothing for sure. */
  nodes: Pick<ToolNodes, "find">;
  /** After each decision that was made here: others look. */
  announce(): void;
  clock: Pick<Clock, "nowSeconds" | "monotonicMs">;
  log: Log;
}

type Kind = ToolDefinition["kind"];
type Json = Readonly<Record<string, unknown>>;

/** What of a server says what of it is offered. */
type GuardedServer = Pick<McpServer, "name" | "approval" | "place" | "credentials">;

/** What is listed of a server. */
interface Listed {
  readonly server: GuardedServer;
  readonly origin: string;
  readonly kind: Kind;
}

/** What is on record of a server, each by kind and name. */
interface Known {
  readonly all: Map<string, ToolDefinition>;
  /** Grows with each change. */
  changes: number;
}

interface Read {
  readonly known: Promise<Known>;
  readonly untilMs: number;
}

/** What was offered of a list, which holds while all of this is as it was. */
interface Offer {
  readonly known: Known;
  readonly changes: number;
  readonly approval: McpServer["approval"];
  readonly origin: string;
  readonly offered: readonly Json[];
}

/** What another replica saw is read again then; what an operator decides there is told. */
const knownMs = 10_000;

const otherThan: Readonly<Record<Kind, readonly Kind[]>> = { tool: ["prompt"], prompt: ["tool"], instructions: [] };
/** No tool or prompt is called so. */
const nothingName = "";
/** Rows of one query where words are looked for. SQLite works in the thread that serves requests. */
const batch = 250;
/** A server that makes up tools without end is not followed. */
const maxOfServer = 5_000;
const maxCharacters = 256 * 1024;
/** All that it says at a time: it is in memory while the server is used. */
const maxCharactersOfServer = 16 * 1024 * 1024;

export class Definitions implements DefinitionGuard {
  readonly #options: DefinitionsOptions;
  /** By server. */
  readonly #read = new Map<string, Read>();
  /** A call costs the same however many tools there are: lists are compared once, and not for each call. */
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
    // By kind, as tools and prompts are listed one after the other: whichever came later would wait.
    const isNew = (one: Kind) => all.values().every((definition) => definition.kind !== one);
    const isFirst = server.approval !== "each" && isNew(kind);
    const isApproved = isFirst || server.approval === "all";
    let characters = all.values().reduce((sum, { seen }) => sum + seen.length, 0);
    const looks = new Set<string>();
    const changed: ToolDefinition[] = [];
    const offered = listed.filter((item) => {
      const { name } = item;
      if (typeof name !== "string" || !isPlainName(name) || looks.has(lookOf(name))) return false;
      // Two that look the same to a person, or have the same name: the first is meant.
      looks.add(lookOf(name));
      const judged = this.#judge(all, { server, origin, kind }, name, item, isApproved);
      if (!judged) return false;
      const { state, record } = judged;
      if (!record) return state === "approved";
      characters += record.seen.length - (all.get(keyOf(kind, name))?.seen.length ?? 0);
      if (characters > maxCharactersOfServer) return false;
      changed.push(record);
      return state === "approved";
    });
    // What it adds later is later than when it was first seen, also where it had nothing then.
    const without = [...(changed.length === 0 ? [kind] : []), ...(lacks ? otherThan[kind] : [])].filter(isNew);
    const seenAt = this.#options.clock.nowSeconds();
    for (const one of without) changed.push(nothingSeen({ server: server.name, kind: one, name: nothingName, seenAt }));
    if (changed.length > 0) await this.#keep(known, changed);
    return offered;
  }

  /** How many of each server wait for an operator. */
  waiting(): Promise<ReadonlyMap<string, number>> {
    return this.#options.store.countWaiting();
  }

  /** What is known of a server, as it was seen last. `search`: words that are in its name, title or description. */
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
   * Approves or refuses what was seen last. Rejects with `not_found`, or with `invalid_request` where the server says something
   * else by now than what `seen` is of.
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
    this.#tell();
    this.#options.announce();
    return definition;
  }

  /** A server that is there no more: another one may get its name. */
  forget(server: string): void {
    this.#read.delete(server);
  }

  /** Another process may have decided something, or changed what is no tool at all: who listens is told where it is ours. */
  async reload(): Promise<void> {
    let isChanged = false;
    for (const [server, { known }] of [...this.#read]) {
      const again = this.#keepRead(server, known);
      if ((await again) !== (await known.catch(() => undefined))) isChanged = true;
    }
    if (isChanged) this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Calls `listener` when something was decided, here or elsewhere; gives what ends that. */
  onDecision(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** How it is with what a server lists, which nothing is noted of; `new`: it was never seen. */
  async statesOf(server: GuardedServer, kind: Kind, listed: readonly Json[]): Promise<(DefinitionState | "new")[]> {
    const { all } = await this.#of(server.name);
    const origin = this.#originOf(server.place);
    return listed.map((item) => {
      const name = String(item["name"]);
      if (!all.has(keyOf(kind, name))) return "new";
      return this.#judge(all, { server, origin, kind }, name, item, false)?.state ?? "changed";
    });
  }

  /** By its id, as another machine may have the name of a node by now. */
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

  /** What was read before stays where nothing has changed, and with it what was offered. */
  async #readAgain(server: string, before: Promise<Known> | undefined): Promise<Known> {
    const definitions = await this.#options.store.listDefinitions(server);
    const all = new Map(definitions.map((one) => [keyOf(one.kind, one.name), one]));
    const known = await before?.catch(() => undefined);
    return known && Bun.deepEquals(known.all, all) ? known : { all, changes: 0 };
  }

  /** Undefined where it is not taken at all. */
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

/** It may tell each person something else. */
function isPersonalServer({ credentials }: Pick<McpServer, "credentials">): boolean {
  return credentials.kind === "person";
}

function hasWords({ name, seen }: ToolDefinition, words: readonly string[]): boolean {
  const { title, description } = JSON.parse(seen) as Json;
  const told = [name, title, description]
    .filter((text) => typeof text === "string")
    .join("\n")
    .toLowerCase();
  return words.every((word) => told.includes(word));
}

function unseen(server: string, kind: Kind, name: string): GatewayError {
  const message = `The MCP server ${server} was not seen to have the ${kind} ${shown(name)}. GET /v1/admin/tool-servers/${server}/definitions lists what it has.`;
  return new GatewayError("not_found", message);
}

function changedMeanwhile(): GatewayError {
  return fieldError("digest", "must be of what the server says now: it says something else by now. Look at it again.");
}
