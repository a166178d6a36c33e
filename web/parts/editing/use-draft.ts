// A form for something's settings: what is in it, what is wrong with it, and the field to which the keyboard goes then.
import { useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { problemOf } from "./field-problem.ts";
import { focusFirstProblem, useFirstProblem } from "./use-first-problem.ts";

interface Kind<Draft, Field extends string> {
  /** The names that the API gives them. */
  fields: readonly Field[];
  /** What can be said before it is sent. */
  errorsOf(draft: Draft): Partial<Record<Field, string>>;
  /** What the server says of a field, where that is not plain enough as it is. */
  serverProblem?(error: ApiFailure | null, field: Field, draft: Draft): string | undefined;
}

interface Sending {
  isPending: boolean;
  error: ApiFailure | null;
  reset(): void;
}

/** `sending`: what becomes of it at the server, whose refusal is about what was sent, and ends with the next change. */
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
    /** Properties of `Form`. */
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
      // Also where the same is wrong as before, of which nothing is drawn anew.
      else setTimeout(() => focusFirstProblem(ref.current));
    },
  };
}
