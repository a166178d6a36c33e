// Takes the keyboard to the first field of a form that is wrong, once that is said there.
import { useEffect, useRef } from "react";

/** What is wrong with each field, if anything. Gives what the form is to be known by. */
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
