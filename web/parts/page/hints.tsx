// What things say of themselves to who points at them or comes to them by keyboard, at one place for all of the page.
import { useEffect, useState } from "react";
import { useLater } from "./later.ts";

const loadHint = async () => (await import("./hint.tsx")).Hint;

/**
 * Shows the text of the attribute `data-hint`, which any element may have: one that nobody asks costs nothing, so that a list
 * may have hundreds. What draws it is loaded with the first.
 */
export function Hints() {
  const [pointed, setPointed] = useState<HTMLElement>();
  const [focused, setFocused] = useState<HTMLElement>();
  useEffect(() => {
    const listening = new AbortController();
    const { signal } = listening;
    // A finger covers what it touches, and does not leave it.
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
  // Where it does not come there is none: nothing is said by hints alone.
  const { part: Hint } = useLater(shown && loadHint);
  return shown && Hint ? <Hint of={shown} /> : null;
}

function at(target: EventTarget | null): HTMLElement | undefined {
  return (target instanceof Element && target.closest<HTMLElement>("[data-hint]")) || undefined;
}

function isByKeyboard(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches(":focus-visible");
}
