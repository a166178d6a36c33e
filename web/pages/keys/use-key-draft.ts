// A form for a key's settings: what is in it, what is wrong with it, and the field to which the keyboard goes then.

import { type FormEvent, useRef, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { problemBeside, problemOf } from "../../parts/field-problem.ts";
import { type DraftErrors, errorsOf, type Field, fields, type KeyDraft } from "./key-draft.ts";

export function useKeyDraft(initial: KeyDraft, failure: ApiFailure | null) {
  const [draft, setDraft] = useState(initial);
  const [found, setFound] = useState<DraftErrors>({});
  const form = useRef<HTMLFormElement>(null);
  return {
    draft,
    form,
    errorOf: (field: Field) => found[field] ?? problemOf(failure, field),
    /** A refusal that is about no field of this form. */
    general: problemBeside(failure, fields),
    change(part: Partial<KeyDraft>) {
      setDraft((now) => ({ ...now, ...part }));
      setFound({});
    },
    submit: (send: (draft: KeyDraft) => void) => (event: FormEvent) => {
      event.preventDefault();
      const wrong = errorsOf(draft, nowSeconds());
      setFound(wrong);
      if (Object.keys(wrong).length === 0) send(draft);
      // Once the errors are drawn.
      else setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    },
  };
}
