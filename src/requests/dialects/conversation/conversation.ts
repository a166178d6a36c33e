// A conversation as it is put to a model, in no format in particular: what one format reads, another writes.

/** Where a value stood in the client's request, in the words of its own format: `messages[3].content[0]`. For errors. */
export type Place = string;

export interface Conversation {
  /** In the order in which they were said; instructions among them. */
  readonly turns: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** Whether one answer may hold several calls; undefined: as the model server has it. */
  readonly parallelCalls?: boolean | undefined;
  readonly output?: OutputForm | undefined;
  readonly thinking?: Thinking | undefined;
  /** The most tokens of the answer, thinking included. */
  readonly maxTokens?: number | undefined;
  readonly sampling: Sampling;
  /** How many answers; undefined: one. */
  readonly choices?: number | undefined;
  readonly stream: boolean;
  /** Anthropic's mark of the whole request: what of it is worth keeping its server finds itself. */
  readonly cache?: Cache | undefined;
  /** What says something of the request and nothing to the model: it may be lost without harm. */
  readonly hints: Hints;
  /** Members that the format itself does not know, or that mean nothing elsewhere, by their names; `null` is left out. */
  readonly others: Readonly<Record<string, unknown>>;
}

export type ConversationMessage = InstructionTurn | UserTurn | AssistantTurn | ResultTurn;

export interface InstructionTurn {
  readonly role: "system" | "developer";
  readonly parts: readonly Part[];
  readonly place: Place;
}

export interface UserTurn {
  readonly role: "user";
  readonly parts: readonly Part[];
  /** Who of several users. */
  readonly name?: string | undefined;
  readonly place: Place;
}

export interface AssistantTurn {
  readonly role: "assistant";
  readonly parts: readonly AnswerPart[];
  readonly name?: string | undefined;
  /** The id that the turn, or its text, had in its format. */
  readonly id?: string | undefined;
  readonly place: Place;
}

/** The result of one call of a tool. */
export interface ResultTurn {
  readonly role: "tool";
  readonly callId: string;
  readonly parts: readonly Part[];
  readonly kind: CallKind;
  /** The tool failed: its parts say why. */
  readonly failed?: boolean | undefined;
  readonly cache?: Cache | undefined;
  readonly place: Place;
}

/** What may be said to a model. `cache`: Anthropic's mark that the prompt up to here is worth keeping. */
export type Part = TextPart | ImagePart | AudioPart | FilePart;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly cache?: Cache | undefined;
}

export interface ImagePart {
  readonly type: "image";
  readonly source: MediaSource;
  /** OpenAI's: auto, low, high. */
  readonly detail?: string | undefined;
  readonly cache?: Cache | undefined;
  readonly place: Place;
}

export interface AudioPart {
  readonly type: "audio";
  /** Base64. */
  readonly data: string;
  /** `wav`, `mp3` and the like. */
  readonly format: string;
  readonly place: Place;
}

export interface FilePart {
  readonly type: "file";
  readonly source: MediaSource;
  readonly name?: string | undefined;
  readonly cache?: Cache | undefined;
  readonly place: Place;
}

export type MediaSource =
  | { readonly kind: "url"; readonly url: string }
  /** `data` is base64. */
  | { readonly kind: "data"; readonly mediaType: string; readonly data: string }
  /** Plain text as a document. */
  | { readonly kind: "text"; readonly text: string }
  /** An id of a file store. */
  | { readonly kind: "id"; readonly id: string };

/** `{type: "ephemeral", ttl?}`, as it was sent. */
export type Cache = Readonly<Record<string, unknown>>;

/** What a model may say. */
export type AnswerPart = TextPart | RefusalPart | ReasoningPart | CallPart;

export interface RefusalPart {
  readonly type: "refusal";
  readonly text: string;
}

export interface ReasoningPart {
  readonly type: "reasoning";
  /** What it thought, as far as it is shown: the texts themselves, or summaries of them. */
  readonly text: string;
  readonly isSummary: boolean;
  /** What its maker needs to see again, as it was sent. */
  readonly proof?: ReasoningProof | undefined;
  readonly id?: string | undefined;
}

/** `signature` and `redacted`: Anthropic's; `encrypted`: OpenAI's `encrypted_content`. */
export interface ReasoningProof {
  readonly kind: "signature" | "redacted" | "encrypted";
  readonly data: string;
}

/** How a tool is called: with JSON arguments, or with any text. */
export type CallKind = "function" | "custom";

export interface CallPart {
  readonly type: "call";
  /** The id that its result names. */
  readonly callId: string;
  readonly kind: CallKind;
  readonly name: string;
  /** OpenAI's Responses: the group of tools that it is of. */
  readonly namespace?: string | undefined;
  /** JSON text of the arguments, or, of a custom tool, the text. */
  readonly input: string;
  /** The id of the item, which is another one. */
  readonly id?: string | undefined;
  readonly cache?: Cache | undefined;
}

export interface Tool {
  readonly kind: CallKind;
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly description?: string | undefined;
  /** JSON Schema of the arguments; of a function. */
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  readonly strict?: boolean | undefined;
  /** What the input of a custom tool must be: `{type: "text"}` or `{type: "grammar", syntax, definition}`. */
  readonly format?: Readonly<Record<string, unknown>> | undefined;
  readonly cache?: Cache | undefined;
  readonly place: Place;
}

export type ToolChoice =
  | { readonly type: "auto" | "none" | "required" }
  | { readonly type: "tool"; readonly kind: CallKind; readonly name: string; readonly namespace?: string | undefined };

export type OutputForm =
  | { readonly type: "text" }
  | { readonly type: "json" }
  | {
      readonly type: "schema";
      readonly name: string;
      readonly description?: string | undefined;
      readonly schema: Readonly<Record<string, unknown>>;
      readonly strict?: boolean | undefined;
    };

/** How much a model is to think, as far as the client says. */
export interface Thinking {
  /** false: not at all; true: yes, as much as it wants to, unless the others say more. */
  readonly enabled?: boolean | undefined;
  /** none, minimal, low, medium, high, xhigh, max. */
  readonly effort?: string | undefined;
  /** Tokens. */
  readonly budget?: number | undefined;
  /** How it is to be shown: OpenAI's `summary`: auto, concise, detailed; or "omitted". */
  readonly shown?: string | undefined;
}

export interface Sampling {
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly seed?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly logitBias?: Readonly<Record<string, number>> | undefined;
  /** Log-probabilities of the answer's tokens, and of so many likely others. */
  readonly logprobs?: number | undefined;
  /** OpenAI's: low, medium, high. */
  readonly verbosity?: string | undefined;
}

export interface Hints {
  readonly user?: string | undefined;
  readonly serviceTier?: string | undefined;
  readonly promptCacheKey?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** A conversation as another format says it. */
export interface WrittenRequest {
  /** JSON text. */
  readonly body: string;
  /** Names of members of the client's request that are not in it, because the format has nothing for them. */
  readonly leftOut: readonly string[];
  /** What calls were renamed to: the name in the body, by which answers are told back. */
  readonly names: CallNames;
}

/** Tools by the name that the engine knows them by, where that, or their kind, is not the client's. */
export type CallNames = ReadonlyMap<string, Pick<Tool, "kind" | "name" | "namespace">>;
