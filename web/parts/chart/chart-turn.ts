// Schedules the drawing of charts: a chart is drawn when it comes near the viewport, each in a task of its own, to keep
// the page responsive.
import { type RefObject, useEffect, useState } from "react";
import type UPlot from "uplot";

/** The margin around the viewport, in pixels. */
const nearBy = 300;

/** Becomes true once the box has come near the viewport, and stays true. */
export function useIsNear(box: RefObject<HTMLElement | null>): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element || isNear) return;
    const watch = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setNear(true);
      },
      { rootMargin: `${nearBy}px` },
    );
    watch.observe(element);
    return () => watch.disconnect();
  }, [box, isNear]);
  return isNear;
}

let lastTurn: Promise<unknown> = Promise.resolve();

/** Calls `draw` with uPlot in a task of its own. Returns a function that cancels this. */
export function whenItsTurn(draw: (Plot: typeof UPlot) => void): () => void {
  let isWanted = true;
  const loaded = import("./plot.ts");
  lastTurn = lastTurn
    .then(() => new Promise((resolve) => setTimeout(resolve)))
    .then(async () => {
      const { Plot } = await loaded;
      if (isWanted) draw(Plot);
    })
    // If uPlot cannot be loaded, the table and the arrow keys still work, and the next chart tries again.
    .catch(() => undefined);
  return () => {
    isWanted = false;
  };
}
