// Tooltips of the whole page in one component, shown on hover and on keyboard focus.
import { useEffect, useState } from "react";
import { useLater } from "./later.ts";

const loadHint = async () => (await import("./hint.tsx")).Hint;

/**
 * Shows the text of the attribute `data-hint`, which any element may have. Unused hints cost nothing, so a list may
 * have hundreds. The component that renders them is loaded with the first hint.
 */
export function Hints() {
  const [pointed, setPointed] = useState<HTMLElement>();
  const [focused, setFocused] = useState<HTMLElement>();
  useEffect(() => {
    const listening = new AbortController();
    const { signal } = listening;
    // Touch is ignored: a finger covers the element, and sends no leave event.
    const point = ({ target, pointerType }: PointerEvent) =>
      setPointed(pointerType === "touch" ? undefined : at(target));
    const leave = ({ relatedTarget }: PointerEvent) => relatedTarget === null && setPointed(undefined);
    const focus = ({ target }: FocusEvent) => setFocused(isByKeyboard(target) ? at(target) : undefined);
    const blur = () => setFocused(undefined);
    const dismiss = ({ key }: KeyboardEvent) => {
      if (key !== "Escape") return;
      setPointed(undefined);
      setFocused(undefined);
    };
    document.addEventListener("pointerover", point, { signal });
    document.addEventListener("pointerout", leave, { signal });
    document.addEventListener("focusin", focus, { signal });
    document.addEventListener("focusout", blur, { signal });
    document.addEventListener("keydown", dismiss, { signal });
    return () => listening.abort();
  }, []);
  const shown = pointed ?? focused;
  // If the component cannot be loaded, no hint appears; no information is in hints alone.
  const { part: Hint } = useLater(shown && loadHint);
  return shown && Hint ? <Hint of={shown} /> : null;
}

function at(target: EventTarget | null): HTMLElement | undefined {
  return (target instanceof Element && target.closest<HTMLElement>("[data-hint]")) || undefined;
}

function isByKeyboard(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches(":focus-visible");
}
