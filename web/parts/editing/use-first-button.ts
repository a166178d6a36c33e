// Takes the keyboard to the first button of what a dialog shows next: the form that had it is gone.
import { useEffect, useRef } from "react";

/** Gives what its place is to be known by. */
export function useFirstButton() {
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => container.current?.querySelector("button")?.focus(), []);
  return container;
}
