// Copies text to the clipboard, even if the browser denies the clipboard API: over plain http, or by the user's
// settings.
import { useEffect, useRef, useState } from "react";
import { announce } from "../page/announce.tsx";

const shownMs = 2_000;

export function useCopying(text: string) {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return {
    state,
    /** Returns whether the text was copied. `near` is an element of the open dialog, which traps the focus. */
    async copy(near: HTMLElement) {
      const isCopied = await copyText(text, near);
      clearTimeout(timer.current);
      setState(isCopied ? "copied" : "failed");
      announce(isCopied ? "Copied" : "Not copied: the browser does not allow this page to copy.");
      if (isCopied) timer.current = setTimeout(() => setState("ready"), shownMs);
      return isCopied;
    },
  };
}

async function copyText(text: string, near: HTMLElement): Promise<boolean> {
  try {
    // The clipboard API is missing outside of secure contexts.
    if ("clipboard" in navigator) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // Access was denied; the older method below may still work.
  }
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.setAttribute("aria-hidden", "true");
  field.style.position = "fixed";
  field.style.opacity = "0";
  (near.parentElement ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
