// The shape of a recorded request: its name and its calls to the gateway.
import type { Json } from "../written-replies.ts";

export interface Call {
  /** POST where there is a body, else GET. */
  method?: string;
  path: string;
  /** A text is sent as it is, anything else as JSON. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** The key in place of the first one; null: none. */
  key?: string | null;
}

/** A call, or a function that makes it from the JSON of earlier answers; `session` there is the id of an MCP session. */
export type Step = Call | ((earlier: readonly Json[]) => Call);

export interface RecordedRequest {
  name: string;
  steps: readonly Step[];
}

export function recorded(name: string, ...steps: readonly Step[]): RecordedRequest {
  return { name, steps };
}
