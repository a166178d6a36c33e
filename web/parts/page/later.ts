// Loads a component's file when it is first needed.
import { startTransition, useEffect, useState } from "react";

export type Load<Part> = () => Promise<Part>;

interface Later<Part> {
  /** The loaded part; undefined until it is loaded, and there immediately if it was loaded before. */
  part: Part | undefined;
  /** The error, if loading failed. */
  failure: { error: unknown } | undefined;
}

const loaded = new Map<Load<unknown>, unknown>();

/**
 * Loads a part. `load` must always be the same function, or undefined while the part is not needed. Unlike with
 * `React.lazy`, the part shows as soon as it is loaded: React would keep a Suspense fallback for 300 ms.
 */
export function useLater<Part>(load: Load<Part> | undefined): Later<Part> {
  const [part, setPart] = useState(() => load && (loaded.get(load) as Part | undefined));
  const [failure, setFailure] = useState<Later<Part>["failure"]>();
  useEffect(() => {
    if (!load || part !== undefined) return;
    load().then(
      (found) => {
        loaded.set(load, found);
        startTransition(() => setPart(() => found));
      },
      (error: unknown) => setFailure({ error }),
    );
  }, [load, part]);
  return { part, failure };
}
