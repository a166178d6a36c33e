// Completes the events of a server that uses the Responses API. Missing events are inserted, and repeated events are
// dropped.
import type { StreamHead, StreamRepair } from "../translation/passed-stream.ts";
import type { RepairHead } from "../translation/repair-head.ts";
import { isObject, type Json, numberOf, objectsOf, textOf } from "./json.ts";
import { statusOf } from "./reply-reader.ts";
import { inputKinds, type PartKind, type PartList, type PieceEvent, partKinds, pieceEvents } from "./stream-pieces.ts";
import { idOf, kindOf, maxItems, type OpenItem, type OpenPart, StreamedItems } from "./streamed-items.ts";
import {
  isWholeUsage,
  itemIdAt,
  requiredMembers,
  strictItem,
  strictOutput,
  strictPart,
  strictUsage,
  withRequired,
} from "./strict-members.ts";

const ends: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);
const begins: ReadonlySet<unknown> = new Set(["response.created", "response.queued", "response.in_progress"]);
const [itemAdded, itemDone] = ["response.output_item.added", "response.output_item.done"];
/** Values that members of a response have at its beginning. */
const justBegun = { output: [], usage: null, completed_at: null, incomplete_details: null, error: null };

export class StrictResponse implements StreamRepair {
  /** Sequence number of the current event. */
  number = 0;
  readonly #head: StreamHead;
  readonly #items = new StreamedItems();
  /** The id for a response whose beginning the server did not send, and the first response id that the server sent. */
  #ownId: string | undefined;
  #reportedId: string | undefined;
  /** The response object in the first event of the stream. */
  #begun: Json | undefined;
  #isInProgress = false;
  /** Events that must be inserted before the current event. */
  #inserted = "";
  #next = 0;
  /**
   * The difference between the client's and the server's sequence numbers. It results from inserted and dropped events.
   */
  #shift = 0;
  #isNumbered = false;
  #isCounting = false;
  #lastReported: Json | undefined;
  /**
   * The output index that the server's event contains. The third member holds the indices of the items in the last
   * event.
   */
  #reportedIndex: number | undefined;
  #piece: PieceEvent | undefined;
  #finalIndexes: readonly number[] = [];

  constructor(head: StreamHead) {
    this.#head = head;
  }

  /**
   * Returns the event, with all members that clients need in its item or response. If none is missing, returns the same
   * object.
   */
  strict(event: Json): Json {
    const { type, item, response } = event;
    this.#piece = undefined;
    if (isObject(response)) {
      const own = this.#strictResponse(response, type);
      return own === response ? event : { ...event, response: own };
    }
    const index = numberOf(event["output_index"]);
    this.#reportedIndex = index;
    if (index !== undefined && !isIndex(index)) return event;
    if ((type === itemAdded || type === itemDone) && isObject(item)) {
      return this.#strictItemEvent(event, type, item, index);
    }
    const piece = pieceEvents.get(type);
    this.#piece = piece;
    return piece ? this.#strictPiece(event, piece, index) : event;
  }

  /** Returns the last event with complete usage, in case the server reports less. */
  counted(event: Json): Json {
    const { type, response } = event;
    if (!isObject(response) || !ends.has(type) || isWholeUsage(response["usage"])) return event;
    return { ...event, response: { ...response, usage: strictUsage(response["usage"], this.#head.usage()) } };
  }

  before(event: Json): string | undefined {
    const reportedNumber = numberOf(event["sequence_number"]);
    this.#isNumbered = reportedNumber !== undefined;
    if (reportedNumber !== undefined) this.#next = Math.max(reportedNumber + this.#shift, this.#next);
    if (this.#isTwice(event, reportedNumber) || !this.#admits(String(event["type"]), event)) {
      if (reportedNumber !== undefined) this.#shift--;
      return undefined;
    }
    this.number = this.#next++;
    const inserted = this.#inserted;
    this.#inserted = "";
    return inserted;
  }

  /** Reports whether the event repeats the previous event, including its number. */
  #isTwice(event: Json, reportedNumber: number | undefined): boolean {
    if (reportedNumber === undefined) return false;
    const last = this.#lastReported;
    this.#lastReported = event;
    if (last === undefined) return false;
    const before = last["sequence_number"];
    if (reportedNumber === Number(before) + 1) this.#isCounting = true;
    return this.#isCounting && reportedNumber === before && JSON.stringify(last) === JSON.stringify(event);
  }

  #strictResponse(response: Json, event: unknown): Json {
    const isEnd = ends.has(event);
    const reportedStatus = response["status"];
    const open = event === "response.queued" ? "queued" : "in_progress";
    const status = isEnd ? statusOf(response, event) : (textOf(reportedStatus) ?? open);
    const own = withRequired(response, status, this.#head);
    const id = this.#ownId ?? (textOf(response["id"]) || this.#reportedId);
    this.#reportedId ??= id;
    const output = isEnd ? this.#finalOutput(response["output"], status) : listOr(response["output"]);
    const usage = response["usage"] ?? null;
    const isStrict = id === own["id"] && output === own["output"] && usage === own["usage"];
    if (isStrict || id === undefined) return isStrict ? own : { ...own, output, usage };
    return { ...own, id, output, usage };
  }

  #finalOutput(output: unknown, status: unknown): readonly Json[] {
    const items = objectsOf(output);
    if (items.length === 0) {
      const known = this.#items.output(status);
      if (known.length > 0) {
        this.#finalIndexes = this.#items.indexesOf(known);
        return known;
      }
    }
    const indexes = this.#items.indexesOf(items);
    this.#finalIndexes = indexes;
    return strictOutput(output, status, (item, position) => {
      const index = indexes[position] as number;
      const open = this.#items.all[index];
      const id = textOf(item["id"]) ? undefined : open?.id;
      return { answerId: this.#head.id, index, id, isWhole: open?.hasInput !== true };
    });
  }

  #strictItemEvent(event: Json, type: unknown, item: Json, index: number | undefined): Json {
    const isDone = type === itemDone;
    const itemIndex = isDone ? this.#items.indexOfDone(index, item) : this.#items.indexOfAdded(index, item);
    const open = this.#items.all[itemIndex];
    const own = strictItem(item, {
      ...{ answerId: this.#head.id, index: itemIndex, id: open?.id },
      status: isDone ? "completed" : "in_progress",
      isWhole: isDone && open?.hasInput !== true,
    });
    this.#reportedItem = item;
    return own === item && itemIndex === index ? event : { ...event, output_index: itemIndex, item: own };
  }

  #reportedItem: Json = {};

  #strictPiece(event: Json, piece: PieceEvent, index: number | undefined): Json {
    const { list, step } = piece;
    const reportedId = textOf(event["item_id"]) || undefined;
    const kind = list && kindOf(piece, event, undefined);
    const type = piece.item ?? (index === undefined ? kind?.item : undefined);
    const itemIndex = this.#items.indexOfPiece(index, reportedId, type);
    const open = this.#items.all[itemIndex];
    const id = open?.id ?? reportedId ?? itemIdAt(this.#head.id, piece.item ?? kind?.item, itemIndex);
    let own = event;
    if (itemIndex !== index || id !== event["item_id"]) own = { ...own, output_index: itemIndex, item_id: id };
    if (list) {
      const name = `${list}_index`;
      const at = numberOf(event[name]) ?? partIndexOf(open?.[list] ?? [], step, kindOf(piece, event, open));
      if (at !== event[name]) own = { ...own, [name]: at };
    }
    if (piece.part || !list) return own;
    const part = strictPart(event["part"]) ?? (step === "added" ? kindOf(piece, event, open).empty : undefined);
    return part === event["part"] ? own : { ...own, part };
  }

  #admits(type: string, event: Json): boolean {
    // After the response has begun, pieces need no other checks.
    if (this.#piece && this.#isInProgress) return this.#admitsPlaced(type, event);
    const { response } = event;
    if (type === "response.created") {
      if (this.#begun) return false;
      this.#begun = isObject(response) ? response : this.#withoutServer();
      return true;
    }
    if (!type.startsWith("response.")) return true;
    if (!this.#begun) this.#begin(response);
    if (type === "response.in_progress") {
      if (this.#isInProgress) return false;
      this.#isInProgress = true;
      return true;
    }
    if (!this.#isInProgress && !begins.has(type)) {
      this.#isInProgress = true;
      this.#insert({ type: "response.in_progress", response: { ...this.#begun, status: "in_progress" } });
    }
    if (type === "response.completed" || type === "response.incomplete") {
      if (isObject(response)) this.#finishItems(objectsOf(response["output"]));
      return true;
    }
    return this.#admitsPlaced(type, event);
  }

  #admitsPlaced(type: string, event: Json): boolean {
    const index = numberOf(event["output_index"]);
    if (index === undefined || !isIndex(index)) return true;
    if (type === itemAdded || type === itemDone) return this.#admitsItem(type, index, event["item"]);
    const piece = this.#piece;
    return !piece || this.#admitsPiece(piece, index, event);
  }

  #admitsItem(type: string, index: number, item: unknown): boolean {
    const known = this.#items.all[index];
    if (!isObject(item)) return true;
    const reportedId = idOf(this.#reportedItem);
    if (type === itemAdded) {
      if (known) return false;
      this.#items.add(index, this.#reportedIndex, item, reportedId, reportedId === undefined);
      return true;
    }
    if (known?.isDone) return false;
    const open = this.#finishParts(item, index, reportedId);
    this.#items.end(open, this.#reportedItem, item);
    return true;
  }

  #admitsPiece({ item, list, step, part: reportedPart, whole }: PieceEvent, index: number, event: Json): boolean {
    let open = this.#items.all[index];
    // If an event ends a text but does not contain the text, the event is dropped. An event with the text is inserted
    // later, from the whole item.
    if (whole !== undefined && event[whole] === undefined) return false;
    if (!list) {
      // The name of a call arrives with its item. Without an item, a piece of a call would have no name.
      if (!open) return false;
      return admitsInput(this.#items, open, step, event);
    }
    if (open?.isDone) return step === "delta" || step === "note";
    open ??= this.#insertItem(index, event, item ?? kindOf({ ...nothing, list }, event, undefined).item);
    const partIndex = numberOf(event[`${list}_index`]) ?? 0;
    if (!isIndex(partIndex)) return true;
    const kind = reportedPart ?? kindOf({ ...nothing, list }, event, open);
    const parts = open[list];
    if (step === "added") {
      if (parts[partIndex]) return false;
      parts[partIndex] = newPart(kind);
      return true;
    }
    const part =
      parts[partIndex] ?? (step === "done" ? undefined : this.#insertPart(open, partIndex, index, kind, kind.empty));
    return !part || this.#admitsText(part, { step, isText: reportedPart !== undefined, isLean: open.isLean }, event);
  }

  #admitsText(
    part: OpenPart,
    { step, isText, isLean }: { step: string; isText: boolean; isLean: boolean },
    event: Json,
  ) {
    if (step === "delta") {
      part.hasText = true;
      if (isLean) this.#items.keep(part, event["delta"]);
    } else if (step === "done" && isText) {
      if (part.isTextDone) return false;
      part.isTextDone = true;
    } else if (step === "done") {
      if (part.isDone) return false;
      if (isObject(event["part"])) this.#finishText(part, event["part"], event);
      part.isDone = true;
    }
    return true;
  }

  #begin(response: unknown): void {
    if (!isObject(response)) this.#ownId = this.#head.id;
    const begun = isObject(response) ? response : this.#withoutServer();
    this.#begun = { ...begun, ...justBegun, status: "in_progress" };
    this.#insert({ type: "response.created", response: this.#begun });
  }

  /** Returns a response object if the server has sent none. */
  #withoutServer(): Json {
    return { ...requiredMembers(this.#head, "in_progress"), ...justBegun };
  }

  /** Inserts the beginning of the item to which a piece belongs. */
  #insertItem(itemIndex: number, { item_id: id }: Json, type: string): OpenItem {
    const item =
      type === "reasoning"
        ? { id, type, summary: [] }
        : { id, type: "message", status: "in_progress", role: "assistant", content: [] };
    this.#insert({ type: itemAdded, output_index: itemIndex, item });
    return this.#items.add(itemIndex, this.#reportedIndex, item, textOf(id), true);
  }

  #insertPart(open: OpenItem, at: number, output_index: number, kind: PartKind, part: Json): OpenPart {
    const state = newPart(kind);
    open[kind.list][at] = state;
    const type = `${kind.partEvent}.added`;
    this.#insert({ type, item_id: open.id, output_index, [`${kind.list}_index`]: at, part });
    return state;
  }

  /** When the whole response arrives, ends the items that are still open, and inserts missing items. */
  #finishItems(items: readonly Json[]): void {
    this.#reportedIndex = undefined;
    for (const [position, item] of items.slice(0, maxItems).entries()) {
      const itemIndex = this.#finalIndexes[position] as number;
      if (this.#items.all[itemIndex]?.isDone) continue;
      const open = this.#finishParts(item, itemIndex, idOf(item));
      open.isDone = true;
      this.#insert({ type: itemDone, output_index: itemIndex, item: { ...item, ...(open.id && { id: open.id }) } });
    }
  }

  #finishParts(item: Json, itemIndex: number, reportedId: string | undefined): OpenItem {
    const { type } = item;
    let open = this.#items.all[itemIndex];
    if (!open) {
      const begun = emptied(item);
      this.#insert({ type: itemAdded, output_index: itemIndex, item: begun });
      open = this.#items.add(itemIndex, this.#reportedIndex, begun, reportedId, false);
    }
    const of = { item_id: open.id ?? item["id"], output_index: itemIndex };
    const input = inputKinds[String(type)];
    if (input && !open.isInputDone) {
      const all = textOf(item[input.member]) ?? "";
      if (!open.hasInput && all !== "") this.#insert({ type: `${input.event}.delta`, ...of, delta: all });
      this.#insert({ type: `${input.event}.done`, ...of, [input.member]: all });
      open.isInputDone = true;
    }
    if (type === "message" || type === "reasoning") {
      for (const list of ["content", "summary"] as const) this.#finishList(open, item[list], list, of);
    }
    return open;
  }

  #finishList(open: OpenItem, parts: unknown, list: PartList, of: { output_index: number }): void {
    for (const [at, part] of objectsOf(parts).entries()) {
      const kind = partKinds[String(part["type"])];
      if (kind?.list !== list) continue;
      const begun = { ...part, [kind.member]: "" };
      const state = open[list][at] ?? this.#insertPart(open, at, of.output_index, kind, begun);
      if (state.isDone) continue;
      const inPart = { ...of, [`${list}_index`]: at };
      this.#finishText(state, part, inPart);
      state.isDone = true;
      this.#insert({ type: `${kind.partEvent}.done`, ...inPart, part });
    }
  }

  #finishText(state: OpenPart, part: Json, event: Json): void {
    const kind = partKinds[String(part["type"])];
    if (state.isTextDone || !kind) return;
    state.isTextDone = true;
    const { item_id, output_index } = event;
    const name = `${kind.list}_index`;
    const of = { item_id, output_index, [name]: event[name] };
    const text = textOf(part[kind.member]) ?? "";
    const logprobs = kind.type === "output_text" ? { logprobs: part["logprobs"] ?? [] } : {};
    if (!state.hasText && text !== "")
      this.#insert({ type: `${kind.textEvent}.delta`, ...of, delta: text, ...logprobs });
    this.#insert({ type: `${kind.textEvent}.done`, ...of, [kind.member]: text, ...logprobs });
  }

  #insert(event: Json): void {
    const { response } = event;
    const number = this.#next++;
    if (this.#isNumbered) this.#shift++;
    const own = {
      ...event,
      ...(isObject(response) && { response: this.#head.own(response) }),
      sequence_number: number,
    };
    this.#head.inserted(own);
    this.#inserted += `event: ${String(event["type"])}\ndata: ${JSON.stringify(own)}\n\n`;
  }
}

const nothing = { step: "added", item: undefined, part: undefined, whole: undefined } as const;

function isIndex(index: number): boolean {
  return index >= 0 && index <= maxItems;
}

function listOr(value: unknown): unknown {
  return Array.isArray(value) ? value : [];
}

function newPart(kind: PartKind): OpenPart {
  return { kind, text: "", hasText: false, isTextDone: false, isDone: false };
}

/** Returns the index of a part, in case its event has none. */
function partIndexOf(parts: readonly (OpenPart | undefined)[], step: PieceEvent["step"], kind: PartKind): number {
  const last = parts.at(-1);
  if (!last) return 0;
  const isLast = step === "done" || (!last.isDone && last.kind === kind && !(step === "added" && last.hasText));
  return isLast ? parts.length - 1 : parts.length;
}

function admitsInput(items: StreamedItems, open: OpenItem, step: PieceEvent["step"], event: Json): boolean {
  if (step === "delta") {
    open.hasInput = true;
    if (open.isLean) items.keepInput(open, event["delta"]);
    return true;
  }
  if (open.isInputDone || open.isDone) return false;
  open.isInputDone = true;
  open.hasInput ||= Boolean(textOf(event["arguments"]) ?? textOf(event["input"]));
  return true;
}

/** Returns the item without content, in the form that it has at its beginning. */
function emptied(item: Json): Json {
  const { type, status } = item;
  const input = inputKinds[String(type)];
  const list = type === "message" ? { content: [] } : type === "reasoning" ? { summary: [], content: undefined } : {};
  const begun = { ...item, ...(status !== undefined && { status: "in_progress" }), ...list };
  return input ? { ...begun, [input.member]: "" } : begun;
}

/** Returns a whole response with all members that clients need. If none is missing, returns the same object. */
export function strictResponse(response: Json, head: RepairHead): Json {
  const status = statusOf(response, undefined);
  const own = withRequired(response, status, head);
  const output = strictOutput(own["output"], status, (_, index) => ({ answerId: head.id, index, isWhole: true }));
  const usage = isWholeUsage(own["usage"]) ? own["usage"] : strictUsage(own["usage"], head.usage());
  return output === own["output"] && usage === own["usage"] ? own : { ...own, output, usage };
}
