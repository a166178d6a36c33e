// Announces changes to screen readers, such as a new page or a copied text.
import { VisuallyHidden } from "@mantine/core";
import { useSyncExternalStore } from "react";

let said = "";
const listeners = new Set<() => void>();

export function announce(text: string): void {
  // A repeated text gets a non-breaking space, so that screen readers announce it again.
  said = text === said ? `${text}\u00a0` : text;
  for (const listener of listeners) listener();
}

/** Rendered once, outside of the parts that change. */
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
