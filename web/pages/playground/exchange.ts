// The types of a playground conversation, as shown and stored.
import type { ApiFailure } from "../../api/client.ts";
import type { Usage } from "../../api/types.ts";
import type { Settings } from "./settings.ts";

/** A file that a message brings along. */
export interface Attachment {
  name: string;
  kind: "image" | "file" | "text";
  /** A data URL, or the text itself; absent after a reload, because files are not stored. */
  data?: string;
}

/** A call of a tool that the model asked for, and its result. */
export interface ToolCall {
  id: string;
  name: string;
  /** JSON, as the model wrote it. */
  arguments: string;
  /** The text that the tool returned; null while the tool runs. */
  result: string | null;
}

export interface Answer {
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  model: string;
  text: string;
  thought: string;
  /** Absent in conversations that an earlier version stored. */
  calls?: readonly ToolCall[];
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
  attachments?: readonly Attachment[];
  answer: Answer;
}

export interface Message {
  role: "system" | "user" | "assistant";
  /** Text, or content parts of the API. */
  content: string | readonly object[];
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
