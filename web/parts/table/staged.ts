// Draws a long list in stages, so that no one of them holds the browser up.
import { startTransition, useEffect, useState } from "react";

/**
 * How many of a list are drawn by now: so many at first, as a window shows, and as many more each time; once all are, for good,
 * it is Infinity. `length`: undefined until it is known.
 */
export function useStaged(length: number | undefined, stage: number): number {
  const [drawn, setDrawn] = useState(stage);
  useEffect(() => {
    if (length === undefined || drawn === Infinity) return;
    const next = drawn + stage;
    startTransition(() => setDrawn(next < length ? next : Infinity));
  }, [drawn, length, stage]);
  return drawn;
}
