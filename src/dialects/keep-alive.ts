// What is sent through a silence of a stream: a comment, which every reader of events passes over.

export const comment = ": keep-alive\n\n";

/** What it says while the request waits for its turn: `: queued, place 3 of 12, about 4 s`. */
export function queuedComment({ place, of, expectedMs }: Queued): string {
  const wait = expectedMs === undefined ? "" : `, about ${Math.max(1, Math.round(expectedMs / 1000))} s`;
  return `: queued, place ${place} of ${of}${wait}\n\n`;
}

interface Queued {
  readonly place: number;
  readonly of: number;
  /** Undefined where nobody knows. */
  readonly expectedMs: number | undefined;
}
