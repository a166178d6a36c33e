// Messages of a request and its answer in any API format, for traces. The values of members with type unknown have not
// been checked.

/** Maximum number of messages, of parts, of calls, and of choices in a trace. */
export const maxSaid = 256;

/** A message of a prompt or of an answer. */
export interface Said {
  readonly role: unknown;
  readonly parts: readonly SaidPart[];
  readonly calls: readonly SaidCall[];
  /** Id of the tool call whose result this message is. Undefined if the message is not a result. */
  readonly resultOf?: string;
  /** The finish reason that the answer reports. */
  readonly reason?: unknown;
}

/** A text, or the type of a part that has no text. */
export interface SaidPart {
  readonly text?: string;
  readonly type?: unknown;
}

/** A tool call. `text` contains its arguments. */
export interface SaidCall {
  readonly id: unknown;
  readonly name: unknown;
  readonly text: unknown;
}

/** The text and the calls that a chunk of a stream adds to a choice. */
export interface SaidPiece {
  readonly index: unknown;
  readonly text: unknown;
  readonly calls: readonly (SaidCall & { readonly index: unknown })[];
  readonly reason: unknown;
}

/** Facts that a model server reports about its answer, in one chunk or in the whole answer. */
export interface ReportedAnswer {
  id?: string;
  model?: string;
  /** The finish reason of each choice, by the index of the choice. */
  finishReasons: Map<number, string>;
  cachedTokens?: number;
  reasoningTokens?: number;
}
