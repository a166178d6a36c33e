// The jobs of the processes of the built-in engine's benchmark, and their answers.

export interface EngineJob {
  /** The address at which the engine answers; left out for the one that is driven directly. */
  target?: EngineTarget;
  model: string;
  prompt: string;
  /** Given so great a bias that the model writes nothing else: its own replies are too short to measure a speed. */
  onlyToken: number;
  /** Tokens of the shortest chat; the longest has half as many more, so that they begin and end at different times. */
  tokens: number;
  /** Chats at once. */
  chats: number;
  /** Whether the model driven directly uses the library's own batching instead of ours. */
  libraryBatching?: boolean;
  /** Chats one after the other on each connection. Every chat of a job has a seed of its own, the same in every run. */
  turns: number;
}

export interface EngineTarget {
  /** A Unix domain socket, or a port of this machine. */
  address: { unix: string } | { hostname: string; port: number };
  path: string;
  /** Sent as the bearer token. */
  key: string;
}

export interface EngineWindow {
  /** Completion tokens of all chats. */
  tokens: number;
  /** Tokens of one chat's prompt. */
  promptTokens: number;
  seconds: number;
  /** Median from the sending of a request to the first text of its answer. */
  firstTokenMs: number;
  /** Number of errors by what went wrong. */
  errors: Record<string, number>;
}

/** Tokens of the chat with this seed. */
export function lengthOf({ tokens }: EngineJob, seed: number): number {
  return tokens + ((seed * 67) % Math.ceil(tokens / 2));
}
