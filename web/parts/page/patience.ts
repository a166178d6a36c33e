// Keeps a search through many pages from going on for ever where it finds next to nothing: it waits to be told.
import { useMemo, useState } from "react";

/** About what a screen shows: fewer are not worth an end of the search. */
const screenRows = 20;
/** Pages in which the server found next to nothing, before somebody is asked whether to go on. */
const pagesInVain = 40;

export interface Patience {
  isPaused: boolean;
  goOn(): void;
}

const noPages: readonly never[] = [];

export function usePatience(pages: readonly { data: readonly unknown[] }[] = noPages, hasNextPage: boolean): Patience {
  const [allowed, allow] = useState(pagesInVain);
  const inVain = useMemo(() => pagesSinceScreen(pages), [pages]);
  return { isPaused: hasNextPage && inVain >= allowed, goOn: () => allow(inVain + pagesInVain) };
}

/** The last pages that together would not fill a screen. */
function pagesSinceScreen(pages: readonly { data: readonly unknown[] }[]): number {
  let [rows, count] = [0, 0];
  for (const { data } of pages.toReversed()) {
    rows += data.length;
    if (rows >= screenRows) break;
    count++;
  }
  return count;
}
