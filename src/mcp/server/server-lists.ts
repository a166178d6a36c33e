// Reads the lists of MCP servers, page by page and within limits. Each list is cached for a short time.
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { ClientSession, JsonObject, ToolExchange } from "../../domain/tools/client-session.ts";

export const listKinds = {
  tools: { method: "tools/list", capability: "tools", changed: "notifications/tools/list_changed" },
  prompts: { method: "prompts/list", capability: "prompts", changed: "notifications/prompts/list_changed" },
  resources: { method: "resources/list", capability: "resources", changed: "notifications/resources/list_changed" },
  resourceTemplates: {
    method: "resources/templates/list",
    capability: "resources",
    changed: "notifications/resources/list_changed",
  },
} as const;
export type ListKind = keyof typeof listKinds;

const [maxPages, maxItems] = [64, 5_000];
/** Maximum characters of one list, and of all cached lists together. */
const [maxListLength, maxKept] = [8 * 1024 * 1024, 64 * 1024 * 1024];
/**
 * Default and maximum milliseconds for which a list is cached. Servers may state a shorter time; a change notification
 * drops the list.
 */
const [defaultMs, maxMs] = [60_000, 600_000];
/** Maximum nesting depth of an item. Deeper items are left out, because some clients would reject the whole list. */
const deepest = 100;
const sweepMs = 30_000;
/** Milliseconds within which a list is not read again, even if a client asks for a fresh one. */
const freshMs = 1_000;
/** Timeout for all pages of a list together. */
const readMs = 60_000;

interface ReadList {
  readonly items: readonly JsonObject[];
  readonly length: number;
  readonly goodMs: number;
}

interface Kept {
  readonly items: Promise<readonly JsonObject[]>;
  length: number;
  readMs: number;
  untilMs: number;
  /** The running read that replaces this list. */
  renewal?: Promise<readonly JsonObject[]> | undefined;
}

/**
 * Waits for a request slot of the server. Resolves to a function that releases it. Rejects if none becomes free in
 * time.
 */
type TakeSlot = (cancellation: Cancellation) => Promise<() => void>;

/** Takes no slot, because a session with a single caller needs none. */
const atOnce: TakeSlot = async () => () => {};

export class ServerLists {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #kept = new WeakMap<ClientSession, Map<ListKind, Kept>>();
  /** Cached lists, oldest first, each with a function that drops it. */
  readonly #all = new Map<Kept, () => void>();
  #length = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /**
   * Returns a list. Concurrent callers share one read. Each page takes a slot through `takeSlot`. If `isFresh`, a list
   * older than a second is read again; other callers get the old one meanwhile.
   */
  of(
    link: ClientSession,
    kind: ListKind,
    takeSlot: TakeSlot = atOnce,
    isFresh = false,
  ): Promise<readonly JsonObject[]> {
    const kept = this.#of(link);
    const known = kept.get(kind);
    const now = this.#clock.monotonicMs();
    if (known && now < known.untilMs) {
      if (!isFresh || now < known.readMs + freshMs) return known.items;
      known.renewal ??= this.#read(link, kind, takeSlot, kept, known);
      return known.renewal;
    }
    this.#drop(kept, kind);
    return this.#read(link, kind, takeSlot, kept);
  }

  /** Reads a list. If `known` is set, that older list stays in use until the read succeeds. */
  #read(
    link: ClientSession,
    kind: ListKind,
    takeSlot: TakeSlot,
    kept: Map<ListKind, Kept>,
    known?: Kept,
  ): Promise<readonly JsonObject[]> {
    const read = inTime(link, kind, takeSlot);
    const items = read.then((list) => list.items);
    const fresh: Kept = { items, length: 0, readMs: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY };
    if (!known) kept.set(kind, fresh);
    read.then(
      ({ goodMs, length }) => {
        fresh.readMs = this.#clock.monotonicMs();
        fresh.untilMs = fresh.readMs + Math.min(goodMs, maxMs);
        // The cached list was dropped during the read because it changed, so do not cache this one.
        if (kept.get(kind) !== (known ?? fresh)) return;
        if (known) this.#drop(kept, kind);
        kept.set(kind, fresh);
        this.#keep(fresh, length, () => this.#drop(kept, kind));
      },
      () => {
        if (known) known.renewal = undefined;
        else if (kept.get(kind) === fresh) kept.delete(kind);
      },
    );
    return items;
  }

  #keep(fresh: Kept, length: number, drop: () => void): void {
    fresh.length = length;
    this.#length += length;
    bufferedBytes.kept(length);
    this.#all.set(fresh, drop);
    for (const older of this.#all.values()) {
      if (this.#length <= maxKept) break;
      older();
    }
  }

  #drop(kept: Map<ListKind, Kept>, kind: ListKind): void {
    const known = kept.get(kind);
    kept.delete(kind);
    if (!known || !this.#all.delete(known)) return;
    this.#length -= known.length;
    bufferedBytes.kept(-known.length);
  }

  #of(link: ClientSession): Map<ListKind, Kept> {
    const known = this.#kept.get(link);
    if (known) return known;
    const kept = new Map<ListKind, Kept>();
    this.#kept.set(link, kept);
    const stop = link.onChange((method) => {
      for (const [kind, { changed }] of Object.entries(listKinds))
        if (changed === method) this.#drop(kept, kind as ListKind);
    });
    // Remove the listener if no list is cached: it would keep the session and its process in use.
    const timer = setInterval(() => {
      const now = this.#clock.monotonicMs();
      for (const [kind, { untilMs }] of kept) if (untilMs <= now) this.#drop(kept, kind);
      if (kept.size > 0) return;
      clearInterval(timer);
      this.#kept.delete(link);
      stop();
    }, sweepMs);
    timer.unref();
    return kept;
  }
}

/**
 * Reads a list with a timeout. Callers share the read, so it does not end with one of them and counts in no caller's
 * memory.
 */
async function inTime(link: ClientSession, kind: ListKind, takeSlot: TakeSlot): Promise<ReadList> {
  const cancellation = new Cancellation();
  const late = () => cancellation.cancel(listFault(`${listKinds[kind].method} took more than ${readMs} ms`));
  const timer = setTimeout(late, readMs);
  try {
    return await readList(link, kind, { memoryAccount: bufferedBytes.bounded, cancellation }, takeSlot);
  } finally {
    clearTimeout(timer);
  }
}

async function readList(
  link: ClientSession,
  kind: ListKind,
  exchange: ToolExchange,
  takeSlot: TakeSlot,
): Promise<ReadList> {
  const { method, capability } = listKinds[kind];
  if (link.capabilities[capability] === undefined) return { items: [], length: 0, goodMs: defaultMs };
  const items: JsonObject[] = [];
  const cursors = new Set<string>();
  let goodMs: number = defaultMs;
  let length = 0;
  let cursor: string | undefined;
  do {
    const leave = await takeSlot(exchange.cancellation);
    const asked = link.request(method, cursor === undefined ? {} : { cursor }, exchange);
    const answer = await asked.finally(leave);
    if ("error" in answer) throw listFault(`${method}: ${answer.error.code} ${answer.error.message}`);
    const page = answer.result[kind];
    if (page !== undefined && !Array.isArray(page)) throw listFault(`${method}: what it gave is no list`);
    // Push items one by one: a spread of a long list may exceed the maximum number of arguments.
    for (const item of page ?? []) {
      if (!isObject(item) || !isShallow(item, deepest)) continue;
      length += JSON.stringify(item).length;
      if (length > maxListLength) throw listFault(`${method}: more than ${maxListLength} characters`);
      items.push(item);
    }
    const { nextCursor, ttlMs } = answer.result;
    if (typeof ttlMs === "number" && ttlMs > 0) goodMs = Math.min(goodMs, ttlMs);
    cursor = typeof nextCursor === "string" && nextCursor !== "" ? nextCursor : undefined;
    // The cursor was used before, so all pages have been read.
    if (cursor !== undefined && cursors.has(cursor)) return { items: withoutRepetitions(items), length, goodMs };
    if ((cursor !== undefined && cursors.size >= maxPages) || items.length > maxItems) {
      throw listFault(`${method} does not end: ${cursors.size + 1} pages, ${items.length} items`);
    }
    if (cursor !== undefined) cursors.add(cursor);
  } while (cursor !== undefined);
  return { items, length, goodMs };
}

function withoutRepetitions(items: readonly JsonObject[]): JsonObject[] {
  return [...new Map(items.map((item) => [JSON.stringify(item), item])).values()];
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((one) => isShallow(one, depth - 1));
}

function listFault(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The MCP server did not say what it has.", { detail });
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
