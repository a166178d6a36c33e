// A request as it was decoded: what the rest of its way is made of.
import type { Operation } from "../domain/engine.ts";
import type { Members } from "../domain/json-text.ts";

/** Checked, and its text kept. */
export interface DecodedRequest {
  operation: Operation;
  /** The body as the client sent it, its text, and where its top-level members stand. */
  bytes: Uint8Array;
  text: string;
  members: Members;
  body: Readonly<Record<string, unknown>>;
  model: string;
  stream: boolean;
  /** Generations side by side. */
  width: number;
}
