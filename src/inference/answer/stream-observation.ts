// What was seen of a stream so far; what settlement counts.
import type { TokenUsage } from "../../domain/usage/usage.ts";

export interface StreamObservation {
  /** As reported by the engine. */
  reported: TokenUsage | undefined;
  /** UTF-8 bytes of text delivered, and in how many pieces they came. */
  deliveredBytes: number;
  deliveredPieces: number;
  /** Of the model that serves it, in tokens, where it is known. */
  context?: number | undefined;
}
