// A form for nothing but the quotas per window of a member or an app, with what is used of each.
import { type ReactNode, useState } from "react";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Form } from "../editing/form.tsx";
import { useNotifiedChange } from "../editing/told-change.ts";
import { useDraft } from "../editing/use-draft.ts";
import {
  type QuotaDraft,
  type QuotaRule,
  quotaDraftsOf,
  quotasError,
  quotasProblemOf,
  rulesOf,
} from "./quota-draft.ts";
import { QuotaFields } from "./quota-fields.tsx";
import type { UsedQuota } from "./used-quotas.tsx";

interface Bounded {
  quotas: QuotaRule[];
}

interface QuotaFormProps {
  /** Where they are read, with `quotas_used`, and changed. */
  path: string;
  quotas: readonly QuotaRule[];
  /** Whom they bound. */
  about: ReactNode;
  /** Paths whose answers a change makes stale. */
  stale: readonly string[];
  /** A sentence for who changed them. */
  said: string;
  close(): void;
}

const kind = {
  fields: ["quotas"] as const,
  errorsOf({ quotas }: { quotas: readonly QuotaDraft[] }) {
    const error = quotasError(quotas);
    return error === undefined ? {} : { quotas: error };
  },
  serverProblem: quotasProblemOf,
};

export function QuotaForm({ path, quotas, about, stale, said, close }: QuotaFormProps) {
  const { data } = useRead<{ quotas_used: UsedQuota[] }>(path, {}, { enabled: quotas.length > 0, everyMs: 10_000 });
  const save = useNotifiedChange((body: Bounded) => call<Bounded>("PATCH", path, { body }), {
    stale,
    said: () => said,
    done: close,
  });
  const [before] = useState(() => ({ quotas: quotaDraftsOf(quotas) }));
  const { draft, errorOf, form, change, submit } = useDraft(kind, before, save);
  return (
    <Form
      {...form}
      action="Save quotas"
      submit={submit((wanted) => save.mutate({ quotas: rulesOf(wanted.quotas) }))}
      cancel={close}
    >
      <QuotaFields
        quotas={draft.quotas}
        error={errorOf("quotas")}
        about={about}
        used={data?.quotas_used ?? []}
        change={(changed) => change({ quotas: changed })}
      />
    </Form>
  );
}
