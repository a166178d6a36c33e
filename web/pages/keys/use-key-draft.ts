// A form for a key's settings: what is in it, what is wrong with it, and the field to which the keyboard goes then.
import { type FormEvent, useRef, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { fieldErrors } from "../../api/field-errors.ts";
import { type DraftErrors, errorsOf, type KeyDraft } from "./key-draft.ts";

export function useKeyDraft(initial: KeyDraft, failure: ApiFailure | null) {
  const [draft, setDraft] = useState(initial);
  const [found, setFound] = useState<DraftErrors>({});
  const form = useRef<HTMLFormElement>(null);
  const told = fieldErrors(failure);
  const errors: DraftErrors = { ...(told as DraftErrors), ...found };
  return {
    draft,
    errors,
    form,
    /** Of a refusal that is about no field of this form. */
    general: failure !== null && !Object.keys(told).some((field) => field in fieldNames) ? failure : null,
    change(part: Partial<KeyDraft>) {
      setDraft((now) => ({ ...now, ...part }));
      setFound({});
    },
    submit: (send: (draft: KeyDraft) => void) => (event: FormEvent) => {
      event.preventDefault();
      const wrong = errorsOf(draft, Date.now() / 1000);
      setFound(wrong);
      if (Object.keys(wrong).length === 0) send(draft);
      // Once the errors are drawn.
      else setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    },
  };
}

const fieldNames: Record<keyof DraftErrors, true> = {
  ...{ name: true, scopes: true, expires_at: true, allowed_ips: true },
  ...{ rate_limit: true, monthly_tokens: true, monthly_spend: true },
};
