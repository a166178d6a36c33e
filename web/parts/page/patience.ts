// Pauses a search that reads many pages and finds almost nothing, until the user lets it go on.
import { useMemo, useState } from "react";

/** Number of rows that fill about a screen. The latest pages count as nearly empty if together they have fewer rows. */
const screenRows = 20;
/** The number of nearly empty pages after which the search pauses. */
const maxSparsePages = 40;

export interface Patience {
  isPaused: boolean;
  goOn(): void;
}

const noPages: readonly never[] = [];

export function usePatience(pages: readonly { data: readonly unknown[] }[] = noPages, hasNextPage: boolean): Patience {
  const [allowed, allow] = useState(maxSparsePages);
  const sparsePages = useMemo(() => pagesSinceScreen(pages), [pages]);
  return { isPaused: hasNextPage && sparsePages >= allowed, goOn: () => allow(sparsePages + maxSparsePages) };
}

/** Counts the latest pages that together do not fill a screen. */
function pagesSinceScreen(pages: readonly { data: readonly unknown[] }[]): number {
  let [rows, count] = [0, 0];
  for (const { data } of pages.toReversed()) {
    rows += data.length;
    if (rows >= screenRows) break;
    count++;
  }
  return count;
}
