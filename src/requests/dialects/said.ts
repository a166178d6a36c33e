// What was said in a request and in its answer, whatever the format: for those who show it. Where the type is unknown it may be anything.

/** At most so many messages, parts, calls and choices are given. */
export const maxSaid = 256;

/** A message of a prompt or of an answer. */
export interface Said {
  readonly role: unknown;
  readonly parts: readonly SaidPart[];
  readonly calls: readonly SaidCall[];
  /** Id of the call of a tool whose result it is; undefined where it is none. */
  readonly resultOf?: string;
  /** Why the answer ended. */
  readonly reason?: unknown;
}

/** A text, or, where there is none, the type of what it is instead. */
export interface SaidPart {
  readonly text?: string;
  readonly type?: unknown;
}

/** A call of a tool. `text`: its arguments. */
export interface SaidCall {
  readonly id: unknown;
  readonly name: unknown;
  readonly text: unknown;
}

/** What a chunk of a stream adds to one of its answers. */
export interface SaidPiece {
  readonly index: unknown;
  readonly text: unknown;
  readonly calls: readonly (SaidCall & { readonly index: unknown })[];
  readonly reason: unknown;
}

/** What an engine told of its answer, in one chunk or in the whole of it. */
export interface ToldAnswer {
  id?: string;
  model?: string;
  /** Why each choice ended, by its index. */
  finishReasons: Map<number, string>;
  cachedTokens?: number;
  reasoningTokens?: number;
}
