// The state of a settings form: its draft, its errors, and the field that gets the focus.
import { useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { problemOf } from "./field-problem.ts";
import { focusFirstProblem, useFirstProblem } from "./use-first-problem.ts";

interface Kind<Draft, Field extends string> {
  /** The API's names of the fields. */
  fields: readonly Field[];
  /** Returns the errors that are known before sending. */
  errorsOf(draft: Draft): Partial<Record<Field, string>>;
  /** Returns the server's error about a field, if it needs plainer words. */
  serverProblem?(error: ApiFailure | null, field: Field, draft: Draft): string | undefined;
}

interface Sending {
  isPending: boolean;
  error: ApiFailure | null;
  reset(): void;
}

/** `sending` is the request of the form; its error is shown until the next change. */
export function useDraft<Draft extends object, Field extends string>(
  { fields, errorsOf, serverProblem = problemOf }: Kind<Draft, Field>,
  initial: Draft,
  sending: Sending,
) {
  const [first] = useState(initial);
  const [draft, setDraft] = useState(first);
  const [found, setFound] = useState<Partial<Record<Field, string>>>({});
  const errorOf = (field: Field) => found[field] ?? serverProblem(sending.error, field, draft);
  const ref = useFirstProblem(...fields.map(errorOf));
  return {
    draft,
    /** The properties for `Form`. */
    form: { ref, fields, sending, noValidate: true, isEdited: JSON.stringify(draft) !== JSON.stringify(first) },
    errorOf,
    change(part: Partial<Draft>) {
      setDraft((now) => ({ ...now, ...part }));
      setFound({});
      if (sending.error) sending.reset();
    },
    submit: (send: (draft: Draft) => void) => () => {
      const errors = errorsOf(draft);
      setFound(errors);
      if (Object.keys(errors).length === 0) send(draft);
      // The first invalid field gets the focus here, because nothing renders if the errors are the same as before.
      else setTimeout(() => focusFirstProblem(ref.current));
    },
  };
}
