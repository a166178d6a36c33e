// The neutral format of a conversation, which the dialects read and write.

/**
 * Path of a value in the client's request, in the client's format, such as `messages[3].content[0]`. Used in error
 * messages.
 */
export type RequestPath = string;

export interface Conversation {
  /** Turns in the order of the conversation, including instructions. */
  readonly turns: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** True if one answer may contain several calls. If undefined, the model server's default applies. */
  readonly parallelCalls?: boolean | undefined;
  readonly output?: OutputForm | undefined;
  readonly thinking?: Thinking | undefined;
  /** Maximum number of tokens of the answer, including thinking. */
  readonly maxTokens?: number | undefined;
  readonly sampling: Sampling;
  /** Number of answers. If undefined, one. */
  readonly choices?: number | undefined;
  readonly stream: boolean;
  /**
   * Anthropic's cache mark for the whole request. With this mark, Anthropic's server itself chooses the prefix that is
   * cached.
   */
  readonly cache?: Cache | undefined;
  /** Members that describe the request and do not affect the answer. Formats without such members leave them out. */
  readonly hints: Hints;
  /**
   * Members, by name, that the client's format does not know or that mean nothing in other formats. Members with the
   * value `null` are left out.
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
  /** Name of the user. Set if the conversation has several users. */
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
  /** True if the tool failed. The parts then contain the reason. */
  readonly failed?: boolean | undefined;
  readonly cache?: Cache | undefined;
  readonly place: RequestPath;
}

/** A part of the prompt. `cache` is Anthropic's mark: the prompt should be cached up to this part. */
export type Part = TextPart | ImagePart | AudioPart | FilePart;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly cache?: Cache | undefined;
}

export interface ImagePart {
  readonly type: "image";
  readonly source: MediaSource;
  /** OpenAI's `detail`: auto, low or high. */
  readonly detail?: string | undefined;
  readonly cache?: Cache | undefined;
  readonly place: RequestPath;
}

export interface AudioPart {
  readonly type: "audio";
  /** Audio data in base64. */
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
  /** The content of the media. `data` is in base64. */
  | { readonly kind: "data"; readonly mediaType: string; readonly data: string }
  /** A document that is plain text. */
  | { readonly kind: "text"; readonly text: string }
  /** Id of a file in a file store. */
  | { readonly kind: "id"; readonly id: string };

/** Anthropic's cache mark `{type: "ephemeral", ttl?}`, exactly as the client sent it. */
export type Cache = Readonly<Record<string, unknown>>;

/** A part of a model's answer. */
export type AnswerPart = TextPart | RefusalPart | ReasoningPart | CallPart;

export interface RefusalPart {
  readonly type: "refusal";
  readonly text: string;
}

export interface ReasoningPart {
  readonly type: "reasoning";
  /** Text of the shown reasoning: either the reasoning itself or a summary. */
  readonly text: string;
  readonly isSummary: boolean;
  /** Data that the vendor of the model must get back unchanged. */
  readonly proof?: ReasoningProof | undefined;
  readonly id?: string | undefined;
}

/** Proof of reasoning. `signature` and `redacted` are from Anthropic. `encrypted` is OpenAI's `encrypted_content`. */
export interface ReasoningProof {
  readonly kind: "signature" | "redacted" | "encrypted";
  readonly data: string;
}

/** Kinds of tool calls. A function gets JSON arguments, and a custom tool gets any text. */
export type CallKind = "function" | "custom";

export interface CallPart {
  readonly type: "call";
  /** The id of the call, to which its result refers. */
  readonly callId: string;
  readonly kind: CallKind;
  readonly name: string;
  /** The namespace of the tool in OpenAI's Responses API. */
  readonly namespace?: string | undefined;
  /** The arguments as JSON text. For a custom tool, its input text. */
  readonly input: string;
  /** The id of the item in the Responses API. It differs from `callId`. */
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
  /** Format of a custom tool's input: `{type: "text"}` or `{type: "grammar", syntax, definition}`. */
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

/** The amount of thinking that the client requests. */
export interface Thinking {
  /** If false, the model must not think. If true, the other members may limit its thinking. */
  readonly enabled?: boolean | undefined;
  /** The effort: none, minimal, low, medium, high, xhigh or max. */
  readonly effort?: string | undefined;
  /** Maximum tokens for thinking. */
  readonly budget?: number | undefined;
  /** The form in which thinking is shown: OpenAI's `summary` (auto, concise, detailed) or "omitted". */
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
  /** Path of the stop sequences in the client's request, if the path is not `stop`. */
  readonly stopPlace?: RequestPath | undefined;
  readonly logitBias?: Readonly<Record<string, number>> | undefined;
  /** Number of alternatives for each token of the answer. If it is set, the answer includes log-probabilities. */
  readonly logprobs?: number | undefined;
  /** OpenAI's `verbosity`: low, medium or high. */
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
  /** Names of members of the client's request that the body lacks, because its format cannot express them. */
  readonly leftOut: readonly string[];
  /** Tools by their names in the body. Needed to convert calls back. */
  readonly names: CallNames;
}

/** Tools by their name at the model server. Only tools for which the client uses another name or kind. */
export type CallNames = ReadonlyMap<string, Pick<Tool, "kind" | "name" | "namespace">>;
