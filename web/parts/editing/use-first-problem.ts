// Focuses the first invalid field of a form once the errors are shown.
import { useEffect, useRef } from "react";

/** Takes the error of each field, if any. Returns the form's ref. */
export function useFirstProblem(...problems: readonly (string | undefined)[]) {
  const form = useRef<HTMLFormElement>(null);
  const all = problems.filter(Boolean).join("\n");
  useEffect(() => {
    if (all !== "") focusFirstProblem(form.current);
  }, [all]);
  return form;
}

export function focusFirstProblem(form: HTMLFormElement | null): void {
  form?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
}
