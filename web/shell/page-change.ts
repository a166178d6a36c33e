// After another page was opened: it begins at its top, and the keyboard is in it where it would be nowhere.
import { useEffect, useRef } from "react";

/** Once what was removed has given the focus away. */
const settledMs = 50;

export function usePageChange(location: string): void {
  const shown = useRef(location);
  const poppedTo = useRef<string>(undefined);
  useEffect(() => {
    const notice = () => {
      poppedTo.current = window.location.pathname;
    };
    // Before whoever draws the page hears of it.
    window.addEventListener("popstate", notice, { capture: true });
    return () => window.removeEventListener("popstate", notice, { capture: true });
  }, []);
  useEffect(() => {
    if (shown.current === location) return;
    shown.current = location;
    // Back and forward lead to where somebody was, which the browser does.
    if (poppedTo.current !== location) window.scrollTo(0, 0);
    poppedTo.current = undefined;
    const timer = setTimeout(() => {
      const { activeElement } = document;
      if (activeElement !== null && activeElement !== document.body) return;
      document.getElementById("content")?.focus({ preventScroll: true });
    }, settledMs);
    return () => clearTimeout(timer);
  }, [location]);
}
