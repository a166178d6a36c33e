// When a chart is drawn: once it is near to being seen, and one after the other, so that several do not hold the page up.
import { type RefObject, useEffect, useState } from "react";
import type UPlot from "uplot";

/** Pixels around the window. */
const nearBy = 300;

/** From when on it was near once. */
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

/** Calls `draw` with the library that draws, in a task of its own. What is given gives that up. */
export function whenItsTurn(draw: (Plot: typeof UPlot) => void): () => void {
  let isWanted = true;
  const loaded = import("./plot.ts");
  lastTurn = lastTurn
    .then(() => new Promise((resolve) => setTimeout(resolve)))
    .then(async () => {
      const { Plot } = await loaded;
      if (isWanted) draw(Plot);
    })
    // A file that did not come: the figures are there as a table and by the arrow keys, and the next chart tries anew.
    .catch(() => undefined);
  return () => {
    isWanted = false;
  };
}
