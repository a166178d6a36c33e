// Renders a long list in stages, so that no stage blocks the browser.
import { startTransition, useEffect, useState } from "react";

/**
 * Returns how many rows to render: `stage` rows at first, `stage` more after each render, and at the end Infinity.
 * `length` is the number of all rows; undefined while loading.
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
