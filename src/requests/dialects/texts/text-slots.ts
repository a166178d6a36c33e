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
  ...["type", "role", "id", "object", "status", "model", "name", "namespace", "index", "created", "phase"],
  ...[
    "url",
    "image_url",
    "file_data",
    "b64_json",
    "encrypted_content",
    "embedding",
    "signature",
    "media_type",
    "format",
    "detail",
  ],
  ...["finish_reason", "stop_reason", "stop_sequence", "stop", "usage", "logprobs", "annotations", "obfuscation"],
  ...["parameters", "input_schema", "schema", "cache_control", "tool_choice", "include", "truncation", "modalities"],
  // What tools at servers of their own are given, and no model is shown.
  ...["headers", "authorization", "authorization_token", "server_url", "server_label"],
  // What servers say about the answer.
  ...["system_fingerprint", "provider", "native_finish_reason", "content_filter_results", "content_filter_offsets"],
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
/** What of an answer is not said by the model: what it was asked, as it was asked. */
const repeatedMembers: ReadonlySet<string> = new Set([
  ...["instructions", "tools", "prompt", "input", "error", "incomplete_details", "reasoning", "max_tool_calls"],
  ...["prompt_logprobs", "prompt_filter_results", "words", "tokens"],
]);
/** Blocks whose `input` is an object of the model's own making: any member of it may be a text. */
const callTypes: ReadonlySet<unknown> = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);
const jsonMembers: ReadonlySet<string> = new Set(["arguments", "partial_json"]);

/** All texts of a request that a model may be shown. */
export function askedTexts(body: Holder): TextSlot[] {
  return textsIn(body);
}

/** All texts of a whole answer that a model has said. */
export function answeredTexts(answer: Holder): TextSlot[] {
  const said = Object.keys(answer).filter((name) => !repeatedMembers.has(name) && !isNoText(name));
  return said.flatMap((name) => textsAt(answer, name));
}

/** Those of one member. */
export function textsAt(holder: Holder, name: string): TextSlot[] {
  const slots: TextSlot[] = [];
  if (holder[name] !== undefined) look(holder, name, slots);
  return slots;
}

export function textsIn(value: Holder): TextSlot[] {
  const slots: TextSlot[] = [];
  lookInto(value, slots);
  return slots;
}

export function isHolder(value: unknown): value is Holder {
  return typeof value === "object" && value !== null;
}

/** Whether a member is known to have no text. */
export function isNoText(name: string): boolean {
  return namesAndSettings.has(name) || name.endsWith("_id");
}

function lookInto(value: Holder, slots: TextSlot[]): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) look(value as unknown as Holder, index, slots);
    return;
  }
  const isTextSource = value["type"] === "text";
  const isCall = callTypes.has(value["type"]);
  for (const name of Object.keys(value)) {
    if (isNoText(name) || (name === "data" && !isTextSource)) continue;
    const isObject = isCall && name === "input" && isHolder(value[name]);
    if (isObject && Object.keys(value[name] as Holder).length > 0) slots.push(jsonSlot(value, name));
    else look(value, name, slots);
  }
}

/** An object of the model's own making: names and figures in it may be texts as well. */
function jsonSlot(holder: Holder, name: string): TextSlot {
  const put = (text: string) => {
    holder[name] = parsedOr(text, {});
  };
  return { text: JSON.stringify(holder[name]), isJson: true, put };
}

/** A service may give back what is no JSON any more, and a text that is blocked ends anywhere. */
function parsedOr(text: string, other: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return other;
  }
}

function look(holder: Holder, name: string | number, slots: TextSlot[]): void {
  const value = holder[name];
  if (typeof value === "string") {
    const isJson = typeof name === "string" && jsonMembers.has(name);
    const put = (text: string) => {
      holder[name] = text;
    };
    if (value !== "") slots.push({ text: value, isJson, put });
  } else if (isHolder(value)) {
    lookInto(value, slots);
  }
}
