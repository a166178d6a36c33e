// A conversation in the neutral format, which the dialects read and write.

/**
 * Path of a value in the client's request, in the client's format, such as `messages[3].content[0]`. Error messages
 * name it.
 */
export type RequestPath = string;

export interface Conversation {
  /** Turns in the order of the conversation, including instructions. */
  readonly turns: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** True if one answer may hold several calls; undefined for the model server's default. */
  readonly parallelCalls?: boolean | undefined;
  readonly output?: OutputForm | undefined;
  readonly thinking?: Thinking | undefined;
  /** Maximum number of tokens of the answer, thinking included. */
  readonly maxTokens?: number | undefined;
  readonly sampling: Sampling;
  /** Number of answers; undefined means one. */
  readonly choices?: number | undefined;
  readonly stream: boolean;
  /** Anthropic's cache mark for the whole request. With it, Anthropic's server chooses the cached prefix. */
  readonly cache?: Cache | undefined;
  /** Members that describe the request without affecting the answer; a format that lacks them leaves them out. */
  readonly hints: Hints;
  /**
   * Members, by name, that the format does not know or that mean nothing in other formats. Members that are `null` are
   * left out.
   */
  readonly others: Readonly<Record<string, unknown>>;
}

export type ConversationMessage = InstructionTurn | UserTurn | AssistantTurn | ResultTurn;

export interface InstructionTurn {
  readonly role: "system" | "developer";
  readonly parts: readonly Part[];
  readonly place: RequestPath;
}

export interface UserTurn {
  readonly role: "user";
  readonly parts: readonly Part[];
  /** Name of the user, if the conversation has several. */
  readonly name?: string | undefined;
  readonly place: RequestPath;
}

export interface AssistantTurn {
  readonly role: "assistant";
  readonly parts: readonly AnswerPart[];
  readonly name?: string | undefined;
  /** Id of the turn, or of its text, in the client's format. */
  readonly id?: string | undefined;
  readonly place: RequestPath;
}

/** The result of one tool call. */
export interface ResultTurn {
  readonly role: "tool";
  readonly callId: string;
  readonly parts: readonly Part[];
  readonly kind: CallKind;
  /** True if the tool failed; the parts hold the reason. */
  readonly failed?: boolean | undefined;
  readonly cache?: Cache | undefined;
  readonly place: RequestPath;
}

/** A part of the prompt. `cache` is Anthropic's mark: the prompt up to here should be cached. */
export type Part = TextPart | ImagePart | AudioPart | FilePart;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly cache?: Cache | undefined;
}

export interface ImagePart {
  readonly type: "image";
  readonly source: MediaSource;
  /** OpenAI's `detail`: auto, low, high. */
  readonly detail?: string | undefined;
  readonly cache?: Cache | undefined;
  readonly place: RequestPath;
}

export interface AudioPart {
  readonly type: "audio";
  /** Sound data in base64. */
  readonly data: string;
  /** The audio format, such as `wav` or `mp3`. */
  readonly format: string;
  readonly place: RequestPath;
}

export interface FilePart {
  readonly type: "file";
  readonly source: MediaSource;
  readonly name?: string | undefined;
  readonly cache?: Cache | undefined;
  readonly place: RequestPath;
}

export type MediaSource =
  | { readonly kind: "url"; readonly url: string }
  /** `data` is base64. */
  | { readonly kind: "data"; readonly mediaType: string; readonly data: string }
  /** Plain text as a document. */
  | { readonly kind: "text"; readonly text: string }
  /** Id of a file in a file store. */
  | { readonly kind: "id"; readonly id: string };

/** `{type: "ephemeral", ttl?}`, as the client sent it. */
export type Cache = Readonly<Record<string, unknown>>;

/** A part of a model's answer. */
export type AnswerPart = TextPart | RefusalPart | ReasoningPart | CallPart;

export interface RefusalPart {
  readonly type: "refusal";
  readonly text: string;
}

export interface ReasoningPart {
  readonly type: "reasoning";
  /** Shown reasoning: the text itself, or a summary. */
  readonly text: string;
  readonly isSummary: boolean;
  /** Data that the model's vendor needs to see again, unchanged. */
  readonly proof?: ReasoningProof | undefined;
  readonly id?: string | undefined;
}

/** `signature` and `redacted` are Anthropic's; `encrypted` is OpenAI's `encrypted_content`. */
export interface ReasoningProof {
  readonly kind: "signature" | "redacted" | "encrypted";
  readonly data: string;
}

/** Kinds of tool calls: a function takes JSON arguments, a custom tool any text. */
export type CallKind = "function" | "custom";

export interface CallPart {
  readonly type: "call";
  /** The id that the call's result names. */
  readonly callId: string;
  readonly kind: CallKind;
  readonly name: string;
  /** The tool's namespace in OpenAI's Responses. */
  readonly namespace?: string | undefined;
  /** The arguments as JSON text; for a custom tool, its input text. */
  readonly input: string;
  /** The id of the item in Responses, which differs from `callId`. */
  readonly id?: string | undefined;
  readonly cache?: Cache | undefined;
}

export interface Tool {
  readonly kind: CallKind;
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly description?: string | undefined;
  /** JSON Schema of a function's arguments. */
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  readonly strict?: boolean | undefined;
  /** Input format of a custom tool: `{type: "text"}` or `{type: "grammar", syntax, definition}`. */
  readonly format?: Readonly<Record<string, unknown>> | undefined;
  readonly cache?: Cache | undefined;
  readonly place: RequestPath;
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

/** The amount of thinking that the client asks for. */
export interface Thinking {
  /** If false, the model does not think. If true, the other members may limit its thinking. */
  readonly enabled?: boolean | undefined;
  /** The effort: none, minimal, low, medium, high, xhigh or max. */
  readonly effort?: string | undefined;
  /** Thinking budget in tokens. */
  readonly budget?: number | undefined;
  /** The form of the shown thinking: OpenAI's `summary` (auto, concise, detailed) or "omitted". */
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
  /** Path of the stop texts in the client's request, if it is not `stop`. */
  readonly stopPlace?: RequestPath | undefined;
  readonly logitBias?: Readonly<Record<string, number>> | undefined;
  /** Number of alternatives for each token of the answer; if set, the answer includes log-probabilities. */
  readonly logprobs?: number | undefined;
  /** OpenAI's `verbosity`: low, medium, high. */
  readonly verbosity?: string | undefined;
}

export interface Hints {
  readonly user?: string | undefined;
  readonly serviceTier?: string | undefined;
  readonly promptCacheKey?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** A conversation written in another format. */
export interface WrittenRequest {
  /** The body as JSON text. */
  readonly body: string;
  /** Names of members of the client's request that the body lacks because its format cannot express them. */
  readonly leftOut: readonly string[];
  /** Tools by the name in the body, for mapping calls back. */
  readonly names: CallNames;
}

/** Tools by their name at the model server, if the client uses another name or kind. */
export type CallNames = ReadonlyMap<string, Pick<Tool, "kind" | "name" | "namespace">>;
