// A form for an app's settings: what is in it, what is wrong with it, and the field to which the keyboard goes then.
import { type FormEvent, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { problemBeside } from "../../parts/field-problem.ts";
import { useFirstProblem } from "../../parts/use-first-problem.ts";
import { type AppDraft, type DraftErrors, errorsOf, type Field, fields, serverProblem } from "./app-draft.ts";

interface Sending {
  error: ApiFailure | null;
  reset(): void;
}

/** `sending`: what becomes of it at the server, whose refusal is about what was sent, and ends with the next change. */
export function useAppDraft(initial: AppDraft, sending: Sending) {
  const [draft, setDraft] = useState(initial);
  const [found, setFound] = useState<DraftErrors>({});
  const errorOf = (field: Field) => found[field] ?? serverProblem(sending.error, field, draft);
  const form = useFirstProblem(...fields.map(errorOf));
  return {
    draft,
    form,
    errorOf,
    /** A refusal that is about no field of this form. */
    general: problemBeside(sending.error, fields),
    change(part: Partial<AppDraft>) {
      setDraft((now) => ({ ...now, ...part }));
      setFound({});
      if (sending.error) sending.reset();
    },
    submit: (send: (draft: AppDraft) => void) => (event: FormEvent) => {
      event.preventDefault();
      const errors = errorsOf(draft);
      setFound(errors);
      if (Object.keys(errors).length === 0) send(draft);
    },
  };
}
