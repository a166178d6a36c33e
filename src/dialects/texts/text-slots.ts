// Where texts stand in a request or an answer, whatever its format: in all that is not known to be something else.

/** A text, and its place. */
export interface TextSlot {
  readonly text: string;
  /** The arguments of a call, which are JSON as text. */
  readonly isJson: boolean;
  put(text: string): void;
}

type Holder = Record<string | number, unknown>;

/** Members that say what something is, where it is, or how it is to be done; and bytes as text, which no rule can read. */
const namesAndSettings: ReadonlySet<string> = new Set([
  ...["type", "role", "id", "object", "status", "model", "name", "namespace", "index", "created", "phase", "action"],
  ...["url", "image_url", "file_data", "b64_json", "encrypted_content", "signature", "media_type", "format", "detail"],
  ...["finish_reason", "stop_reason", "stop_sequence", "stop", "usage", "logprobs", "annotations", "obfuscation"],
  ...["parameters", "input_schema", "schema", "cache_control", "tool_choice", "include", "truncation", "modalities"],
  ...["metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier", "reasoning_effort", "effort"],
  ...[
    "voice",
    "language",
    "encoding_format",
    "response_format",
    "conversation",
    "size",
    "quality",
    "speed",
    "verbosity",
  ],
]);
/** What of an answer is said by the model. */
const saidMembers = ["choices", "output", "content", "text"] as const;
/** Blocks whose `input` is an object of the model's own making: any member of it may be a text. */
const callTypes: ReadonlySet<unknown> = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);
const jsonMembers: ReadonlySet<string> = new Set(["arguments", "partial_json"]);

/** All texts of a request that a model may be shown. */
export function askedTexts(body: Holder): TextSlot[] {
  return textsIn(body);
}

/** All texts of a whole answer that a model has said. */
export function answeredTexts(answer: Holder): TextSlot[] {
  return saidMembers.flatMap((name) => textsAt(answer, name));
}

/** Those of one member. */
export function textsAt(holder: Holder, name: string): TextSlot[] {
  const slots: TextSlot[] = [];
  if (holder[name] !== undefined) look(holder, name, false, slots);
  return slots;
}

export function textsIn(value: Holder): TextSlot[] {
  const slots: TextSlot[] = [];
  lookInto(value, false, slots);
  return slots;
}

export function isHolder(value: unknown): value is Holder {
  return typeof value === "object" && value !== null;
}

function lookInto(value: Holder, isAllText: boolean, slots: TextSlot[]): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) look(value as unknown as Holder, index, isAllText, slots);
    return;
  }
  const isTextSource = value["type"] === "text";
  for (const name of Object.keys(value)) {
    if (!isAllText && (namesAndSettings.has(name) || name.endsWith("_id"))) continue;
    if (!isAllText && name === "data" && !isTextSource) continue;
    look(value, name, isAllText || (name === "input" && callTypes.has(value["type"])), slots);
  }
}

function look(holder: Holder, name: string | number, isAllText: boolean, slots: TextSlot[]): void {
  const value = holder[name];
  const put = (text: string) => {
    holder[name] = text;
  };
  if (typeof value === "string") {
    const isJson = !isAllText && typeof name === "string" && jsonMembers.has(name);
    if (value !== "") slots.push({ text: value, isJson, put });
  } else if (typeof value === "number" && isAllText) {
    slots.push({ text: String(value), isJson: false, put });
  } else if (isHolder(value)) {
    lookInto(value, isAllText, slots);
  }
}
