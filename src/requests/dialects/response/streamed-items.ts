// Finds the item that a stream event belongs to, even if the server leaves out ids and indices.
import { isObject, type Json, textOf } from "./json.ts";
import { inputKinds, type PartKind, type PartList, type PieceEvent, partKinds } from "./stream-pieces.ts";

/** Maximum number of items, and of parts in one item. If a server sends more, it is faulty. */
export const maxItems = 4_096;
/**
 * Maximum number of characters that are collected from pieces. The ended items that are kept may have as many
 * characters again.
 */
const maxCharacters = 8 * 1024 * 1024;

export interface OpenPart {
  readonly kind: PartKind;
  text: string;
  hasText: boolean;
  isTextDone: boolean;
  isDone: boolean;
}

export interface OpenItem {
  /** The item's id for the client, and the id that the server gave it. */
  readonly id: string | undefined;
  readonly reportedId: string | undefined;
  readonly begun: Json;
  /** True if the server left out members, so that the item may have to be built from its pieces. */
  readonly isLean: boolean;
  readonly content: (OpenPart | undefined)[];
  readonly summary: (OpenPart | undefined)[];
  input: string;
  hasInput: boolean;
  isInputDone: boolean;
  isDone: boolean;
  /** The final item as the server sent it, and as the client gets it. */
  reported?: Json;
  whole?: Json;
}

export class StreamedItems {
  readonly all: (OpenItem | undefined)[] = [];
  readonly #indexes: (number | undefined)[] = [];
  readonly #placesById = new Map<string, number>();
  #characters = 0;
  #itemCharacters = 0;

  /** Adds an item. `reportedIndex` is the index of the item in the server's events. */
  add(
    index: number,
    reportedIndex: number | undefined,
    item: Json,
    reportedId: string | undefined,
    isLean: boolean,
  ): OpenItem {
    const open: OpenItem = {
      ...{ id: textOf(item["id"]), reportedId, begun: item, isLean, content: [], summary: [] },
      ...{ input: "", hasInput: false, isInputDone: false, isDone: false },
    };
    this.all[index] = open;
    if (reportedIndex !== undefined) this.#indexes[reportedIndex] = index;
    for (const id of [reportedId, open.id]) if (id !== undefined) this.#placesById.set(id, index);
    return open;
  }

  /** Returns the index of an item that begins. Some servers send the beginning of an item twice. */
  indexOfAdded(index: number | undefined, item: Json): number {
    const id = idOf(item);
    const known = this.#knownIndex(index, id);
    if (known === undefined) return this.#free(index);
    const open = this.all[known];
    const isKnown =
      open && (id !== undefined && open.reportedId !== undefined ? id === open.reportedId : isGoingOn(open, item));
    return isKnown ? known : this.all.length;
  }

  /** Returns the index of an item that ends. Some servers send the end of an item twice. */
  indexOfDone(index: number | undefined, item: Json): number {
    const id = idOf(item);
    if (index !== undefined || id !== undefined) {
      const known = this.#knownIndex(index, id);
      if (known === undefined && index !== undefined) return this.#free(index);
      const open = known === undefined ? undefined : this.all[known];
      if (known !== undefined && open) {
        const isType = open.begun["type"] === item["type"];
        if (isType && (!open.isDone || (id !== undefined && id === open.reportedId) || isRepeat(open, item)))
          return known;
        return this.#byId(id) ?? this.all.length;
      }
    }
    const going = this.all.findIndex((open) => open && isGoingOn(open, item));
    if (going >= 0) return going;
    const last = this.all.length - 1;
    return this.all[last] && isRepeat(this.all[last] as OpenItem, item) ? last : this.all.length;
  }

  /** Returns the index of the item that a piece belongs to. */
  indexOfPiece(index: number | undefined, id: string | undefined, type: string | undefined): number {
    const known = this.#knownIndex(index, id);
    if (known === undefined) return this.#free(index);
    const open = this.all[known];
    if (!open || (id !== undefined && id === open.reportedId)) return known;
    const isOther = type !== undefined && type !== open.begun["type"] && isKnownType(open.begun["type"]);
    if (!isOther && (!open.isDone || (index !== undefined && id === undefined))) return known;
    return this.#byId(id) ?? this.all.length;
  }

  /** Returns the indices of the items in the last event. Items that appear only in this event follow all others. */
  indexesOf(items: readonly Json[]): number[] {
    const used = new Set<number>();
    let next = this.all.length;
    return items.map((item, position) => {
      const isFree = (index: number) => {
        const open = this.all[index];
        return open !== undefined && !used.has(index) && isAlike(open.begun, item);
      };
      const byId = this.#byId(idOf(item));
      let index = byId !== undefined && !used.has(byId) ? byId : -1;
      if (index < 0 && isFree(position)) index = position;
      if (index < 0) index = this.all.findIndex((_, at) => isFree(at));
      if (index < 0) index = next++;
      used.add(index);
      return index;
    });
  }

  /** Keeps a piece of text, because some items may have to be built from their pieces. */
  keep(part: OpenPart, delta: unknown): void {
    if (typeof delta === "string" && this.#counts(delta)) part.text += delta;
  }

  keepInput(open: OpenItem, delta: unknown): void {
    if (typeof delta === "string" && this.#counts(delta)) open.input += delta;
  }

  /** Ends an item. The item is kept only if all kept items together stay short, because an image has megabytes. */
  end(open: OpenItem, reported: Json, whole: Json): void {
    open.isDone = true;
    const characters = JSON.stringify(whole).length;
    if (this.#itemCharacters + characters > maxCharacters) return;
    this.#itemCharacters += characters;
    open.reported = reported;
    open.whole = whole;
  }

  /** Returns the items as the client got them. They are used if the server leaves them out of the last event. */
  output(status: unknown): Json[] {
    const items = this.all.map((open) => open?.whole ?? (open?.isLean ? putTogether(open, status) : undefined));
    return items.filter(isObject);
  }

  #counts(delta: string): boolean {
    this.#characters += delta.length;
    return this.#characters <= maxCharacters;
  }

  #byId(id: string | undefined): number | undefined {
    return id === undefined ? undefined : this.#placesById.get(id);
  }

  /**
   * Finds an item by its index. Without an index, finds it by its id, or else returns the last item. Some servers give
   * all items the same id.
   */
  #knownIndex(index: number | undefined, id: string | undefined): number | undefined {
    if (index !== undefined) return this.#indexes[index];
    const last = this.all.length - 1;
    return this.#byId(id) ?? (last < 0 ? undefined : last);
  }

  #free(index: number | undefined): number {
    return index === undefined || this.all[index] ? this.all.length : index;
  }
}

/** Returns the id that identifies an item. */
export function idOf(item: Json): string | undefined {
  return textOf(item["id"]) || textOf(item["call_id"]) || undefined;
}

function isKnownType(type: unknown): boolean {
  return type === "message" || type === "reasoning" || String(type) in inputKinds;
}

function isAlike(one: Json, other: Json): boolean {
  return one["type"] === other["type"] && one["name"] === other["name"];
}

function isGoingOn(open: OpenItem, item: Json): boolean {
  return !open.isDone && isAlike(open.begun, item);
}

function isRepeat({ reported }: OpenItem, item: Json): boolean {
  return reported !== undefined && JSON.stringify(reported) === JSON.stringify(item);
}

/** Builds an item from the collected pieces. */
function putTogether({ begun, content, summary, input, hasInput }: OpenItem, status: unknown): Json {
  const own: Record<string, unknown> = { ...begun };
  if ("status" in own) own["status"] = status === "incomplete" ? "incomplete" : "completed";
  const lists: Readonly<Record<PartList, readonly (OpenPart | undefined)[]>> = { content, summary };
  for (const list of ["content", "summary"] as const) {
    const parts = lists[list].filter((part) => part !== undefined);
    if (parts.length > 0) own[list] = parts.map(({ kind, text }) => ({ ...kind.empty, [kind.member]: text }));
  }
  const kind = inputKinds[String(begun["type"])];
  if (kind && hasInput) own[kind.member] = input;
  return own;
}

/** Returns the kind of the part that an event belongs to. */
export function kindOf(piece: PieceEvent, event: Json, open: OpenItem | undefined): PartKind {
  if (piece.part) return piece.part;
  const { part } = event;
  const reportedKind = isObject(part) ? partKinds[String(part["type"])] : undefined;
  if (reportedKind && reportedKind.list === piece.list) return reportedKind;
  if (piece.list === "summary") return partKinds["summary_text"] as PartKind;
  const isThought = open?.begun["type"] === "reasoning";
  return partKinds[isThought ? "reasoning_text" : "output_text"] as PartKind;
}
