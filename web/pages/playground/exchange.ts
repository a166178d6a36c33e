// What was asked and answered in the playground, as it is shown and kept.
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
  /** Measured here, in the browser. */
  firstTokenMs: number | null;
  durationMs: number | null;
  /** The speed that the server's log has; null until it was asked, and where too little came to tell. */
  tokensPerSecond: number | null;
  /** Null until the server answers; what it refuses is in no log. */
  requestId: string | null;
  failure: ApiFailure | null;
  /** Milliseconds since 1970. */
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
  /** To be brought back. */
  cleared: readonly Exchange[] | null;
  settings: Settings;
  draft: string;
  /** What was tried last. */
  model: string | null;
  running: boolean;
}
