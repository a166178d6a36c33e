// Tells who listens, and does not see, what became of something: that a page changed, that a text was copied.
import { VisuallyHidden } from "@mantine/core";
import { useSyncExternalStore } from "react";

let said = "";
const listeners = new Set<() => void>();

export function announce(text: string): void {
  // The same text anew is news as well.
  said = text === said ? `${text}\u00a0` : text;
  for (const listener of listeners) listener();
}

/** Once, outside of what changes. */
export function Announcer() {
  const text = useSyncExternalStore(subscribe, () => said);
  return (
    <VisuallyHidden role="status" aria-live="polite">
      {text}
    </VisuallyHidden>
  );
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
