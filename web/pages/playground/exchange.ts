// The types of a playground conversation, as shown and stored.
import type { ApiFailure } from "../../api/client.ts";
import type { Usage } from "../../api/types.ts";
import type { Settings } from "./settings.ts";

export interface Answer {
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  model: string;
  text: string;
  thought: string;
  finishReason: string | null;
  usage: Usage | null;
  /** The time to the first token, measured in the browser. */
  firstTokenMs: number | null;
  durationMs: number | null;
  /** The speed from the server's log; null until it is loaded, or if the answer was too short to measure. */
  tokensPerSecond: number | null;
  /** The id in the log; null until the server answers, and for a refused request, which is not in the log. */
  requestId: string | null;
  failure: ApiFailure | null;
  /** The time of the failure, in milliseconds since 1970. */
  failedAtMs: number;
}

export interface Exchange {
  id: number;
  question: string;
  answer: Answer;
}

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface ConversationState {
  exchanges: readonly Exchange[];
  /** The cleared exchanges, which can be restored. */
  cleared: readonly Exchange[] | null;
  settings: Settings;
  draft: string;
  /** The model that was used last. */
  model: string | null;
  running: boolean;
}
