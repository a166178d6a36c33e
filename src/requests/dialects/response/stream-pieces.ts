// Describes the stream events that contain a piece of a response's item, and the place where each piece belongs.

export type PartList = "content" | "summary";

/** A type of part, and the names of the events that contain pieces of its text. */
export interface PartKind {
  readonly type: string;
  /** The type of items that have such parts. */
  readonly item: "message" | "reasoning";
  readonly list: PartList;
  /** Name of the part's member that contains the text. */
  readonly member: "text" | "refusal";
  /** Names of the events for the text and for the part, without the last component, such as `.delta`. */
  readonly textEvent: string;
  readonly partEvent: string;
  /** The part at its beginning, without its text. */
  readonly empty: Readonly<Record<string, unknown>>;
}

const content = { list: "content", partEvent: "response.content_part" } as const;

export const partKinds: Readonly<Record<string, PartKind>> = {
  output_text: {
    ...{ type: "output_text", item: "message", ...content, member: "text", textEvent: "response.output_text" },
    empty: { type: "output_text", text: "", annotations: [], logprobs: [] },
  },
  refusal: {
    ...{ type: "refusal", item: "message", ...content, member: "refusal", textEvent: "response.refusal" },
    empty: { type: "refusal", refusal: "" },
  },
  reasoning_text: {
    ...{ type: "reasoning_text", item: "reasoning", ...content, member: "text", textEvent: "response.reasoning_text" },
    empty: { type: "reasoning_text", text: "" },
  },
  summary_text: {
    ...{ type: "summary_text", item: "reasoning", list: "summary", member: "text" },
    ...{ textEvent: "response.reasoning_summary_text", partEvent: "response.reasoning_summary_part" },
    empty: { type: "summary_text", text: "" },
  },
};

/** For each type of call, the names of the events that contain its input. */
export const inputKinds: Readonly<Record<string, { readonly event: string; readonly member: "arguments" | "input" }>> =
  {
    function_call: { event: "response.function_call_arguments", member: "arguments" },
    custom_tool_call: { event: "response.custom_tool_call_input", member: "input" },
  };

export interface PieceEvent {
  readonly step: "added" | "delta" | "done" | "note";
  /** The type of the item. Undefined if the item may be either a message or reasoning. */
  readonly item: string | undefined;
  /** Name of the item's list that contains the part. Undefined for the input of a call. */
  readonly list: PartList | undefined;
  /**
   * The kind of the part whose text the event contains. Undefined for an event of the part itself, or of a call's
   * input.
   */
  readonly part: PartKind | undefined;
  /** If an event ends a text or part, the name of the member that contains the whole text or part. */
  readonly whole: "text" | "refusal" | "arguments" | "input" | "part" | undefined;
}

/** The events that belong to an item, by event type. */
export const pieceEvents: ReadonlyMap<unknown, PieceEvent> = new Map([
  ...Object.values(partKinds).flatMap((kind) => textEvents(kind, kind.textEvent)),
  // In the Open Responses specification, the text of reasoning has this event name.
  ...textEvents(partKinds["reasoning_text"] as PartKind, "response.reasoning"),
  ...partEvents("response.content_part", undefined, "content"),
  ...partEvents("response.reasoning_summary_part", "reasoning", "summary"),
  ...Object.entries(inputKinds).flatMap(([item, { event, member }]): [string, PieceEvent][] => [
    [`${event}.delta`, { step: "delta", item, list: undefined, part: undefined, whole: undefined }],
    [`${event}.done`, { step: "done", item, list: undefined, part: undefined, whole: member }],
  ]),
]);

function textEvents(part: PartKind, name: string): [string, PieceEvent][] {
  const { item, list, member } = part;
  const events: [string, PieceEvent][] = [
    [`${name}.delta`, { step: "delta", item, list, part, whole: undefined }],
    [`${name}.done`, { step: "done", item, list, part, whole: member }],
  ];
  if (name === "response.output_text") {
    events.push([`${name}.annotation.added`, { step: "note", item, list, part, whole: undefined }]);
  }
  return events;
}

function partEvents(name: string, item: string | undefined, list: PartList): [string, PieceEvent][] {
  return [
    [`${name}.added`, { step: "added", item, list, part: undefined, whole: undefined }],
    [`${name}.done`, { step: "done", item, list, part: undefined, whole: "part" }],
  ];
}
