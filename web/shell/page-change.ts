// After a navigation: scrolls to the top, and moves the focus into the page if nothing has it.
import { useEffect, useRef } from "react";
import { cameBack } from "../parts/page/came-back.ts";

/** The delay in milliseconds after which a removed element has lost the focus. */
const settledMs = 50;

export function usePageChange(location: string): void {
  const shown = useRef(location);
  useEffect(() => {
    if (shown.current === location) return;
    shown.current = location;
    // After the back and forward buttons, the browser itself restores the scroll position.
    if (!cameBack()) window.scrollTo(0, 0);
    const timer = setTimeout(() => {
      const { activeElement } = document;
      if (activeElement !== null && activeElement !== document.body) return;
      document.getElementById("content")?.focus({ preventScroll: true });
    }, settledMs);
    return () => clearTimeout(timer);
  }, [location]);
}
