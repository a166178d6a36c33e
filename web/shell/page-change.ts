// After another page was opened: it begins at its top, and the keyboard is in it where it would be nowhere.
import { useEffect, useRef } from "react";
import { cameBack } from "../parts/page/came-back.ts";

/** Once what was removed has given the focus away. */
const settledMs = 50;

export function usePageChange(location: string): void {
  const shown = useRef(location);
  useEffect(() => {
    if (shown.current === location) return;
    shown.current = location;
    // Back and forward lead to where somebody was, which the browser does.
    if (!cameBack()) window.scrollTo(0, 0);
    const timer = setTimeout(() => {
      const { activeElement } = document;
      if (activeElement !== null && activeElement !== document.body) return;
      document.getElementById("content")?.focus({ preventScroll: true });
    }, settledMs);
    return () => clearTimeout(timer);
  }, [location]);
}
