// Focuses the first button of a dialog's next step, because the form that had the focus is gone.
import { useEffect, useRef } from "react";

/** Returns the ref for the container whose first button gets the focus. */
export function useFirstButton() {
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => container.current?.querySelector("button")?.focus(), []);
  return container;
}
