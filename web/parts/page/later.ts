// What is in a file of its own, loaded when it is first needed.
import { startTransition, useEffect, useState } from "react";

export type Load<Part> = () => Promise<Part>;

interface Later<Part> {
  /** Undefined until it is there, which it is at once if it was loaded before. */
  part: Part | undefined;
  /** Why it could not be loaded. */
  failure: { error: unknown } | undefined;
}

const loaded = new Map<Load<unknown>, unknown>();

/**
 * `load`: always the same function, or undefined as long as it is not needed. Other than with `React.lazy` it is shown as soon
 * as it is there: what replaces a fallback of Suspense is held back for 300 ms.
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
