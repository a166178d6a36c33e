// Finds the texts in a request or an answer of any API format. All members are searched except those that are known to
// contain no text.

/** A text in a request or an answer, with a function that replaces it. */
export interface TextSlot {
  readonly text: string;
  /** True for the arguments of a call. These arguments are JSON in a text. */
  readonly isJson: boolean;
  put(text: string): void;
}

type Container = Record<string | number, unknown>;

/** Names of members that name, locate or configure something. Also bytes in text form, which guardrails cannot read. */
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
  // Options for tools at other servers. The model does not read these options.
  ...["headers", "authorization", "authorization_token", "server_url", "server_label"],
  // Members with which servers describe the answer or themselves.
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
/** Names of members in an answer that repeat the request. The model did not write them. */
const repeatedMembers: ReadonlySet<string> = new Set([
  ...["instructions", "tools", "prompt", "input", "error", "incomplete_details", "reasoning", "max_tool_calls"],
  ...["prompt_logprobs", "prompt_filter_results", "words", "tokens"],
]);
/** Types of blocks whose `input` is an object that the model wrote. Any member of this object may contain a text. */
const callTypes: ReadonlySet<unknown> = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);
const jsonMembers: ReadonlySet<string> = new Set(["arguments", "partial_json"]);

/** Returns all texts in a request that a model may read. */
export function askedTexts(body: Container): Iterable<TextSlot> {
  return slotsIn(body);
}

/** Returns all texts in a whole answer that a model wrote. */
export function answeredTexts(answer: Container): TextSlot[] {
  const said = Object.keys(answer).filter((name) => !repeatedMembers.has(name) && !isNoText(name));
  return said.flatMap((name) => textsAt(answer, name));
}

/** Returns the texts in one member. */
export function textsAt(container: Container, name: string): TextSlot[] {
  return [...slotsAt(container, name)];
}

export function textsIn(value: Container): TextSlot[] {
  return [...slotsIn(value)];
}

export function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

/** Reports whether a member with this name is known to contain no text. */
export function isNoText(name: string): boolean {
  return namesAndSettings.has(name) || name.endsWith("_id");
}

/** Yields one slot after another instead of a list, because a request may have two million texts. */
function* slotsIn(value: Container): Generator<TextSlot> {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) yield* slotsAt(value as unknown as Container, index);
    return;
  }
  const isTextSource = value["type"] === "text";
  const isCall = callTypes.has(value["type"]);
  for (const name of Object.keys(value)) {
    if (isNoText(name) || (name === "data" && !isTextSource)) continue;
    const isObject = isCall && name === "input" && isContainer(value[name]);
    if (isObject && Object.keys(value[name] as Container).length > 0) yield jsonSlot(value, name);
    else yield* slotsAt(value, name);
  }
}

/** Treats an object that the model wrote as one JSON text. Names and figures in the object may be texts as well. */
function jsonSlot(container: Container, name: string): TextSlot {
  const put = (text: string) => {
    container[name] = parsedOr(text, {});
  };
  return { text: JSON.stringify(container[name]), isJson: true, put };
}

/**
 * Parses JSON, and returns `other` if it is invalid. A service may return invalid JSON, and a blocked text may end at
 * any place.
 */
function parsedOr(text: string, other: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return other;
  }
}

function* slotsAt(container: Container, name: string | number): Generator<TextSlot> {
  const value = container[name];
  if (typeof value === "string") {
    const isJson = typeof name === "string" && jsonMembers.has(name);
    const put = (text: string) => {
      container[name] = text;
    };
    if (value !== "") yield { text: value, isJson, put };
  } else if (isContainer(value)) {
    yield* slotsIn(value);
  }
}
