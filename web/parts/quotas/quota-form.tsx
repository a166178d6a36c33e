// A form for the quotas of a member, an app or an end user alone, with the usage of each.
import { type ReactNode, useState } from "react";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Form } from "../editing/form.tsx";
import { useNotifiedChange } from "../editing/notified-change.ts";
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

/** For the default budget of end users, the API names the quotas `default_quotas`. */
type Body = Bounded | { default_quotas: QuotaRule[] | null };

interface QuotaFormProps {
  /** The API path that reads the quotas, with `quotas_used`, and changes them. */
  path: string;
  quotas: readonly QuotaRule[];
  /** Default: PATCH. */
  method?: "PATCH" | "PUT";
  /** The member of the request that has the quotas. Default: `quotas`. An empty list of `default_quotas` becomes null. */
  member?: "quotas" | "default_quotas";
  /** A text about whose requests the quotas limit. */
  about: ReactNode;
  /** Paths whose answers a change makes stale. */
  stale: readonly string[];
  /** The notification after a change. */
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

export function QuotaForm(props: QuotaFormProps) {
  const { path, quotas, method = "PATCH", member = "quotas", about, stale, said, close } = props;
  const { data } = useRead<{ quotas_used?: UsedQuota[] }>(path, {}, { enabled: quotas.length > 0, everyMs: 10_000 });
  const save = useNotifiedChange((body: Body) => call<unknown>(method, path, { body }), {
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
      submit={submit((wanted) => {
        const rules = rulesOf(wanted.quotas);
        save.mutate(member === "quotas" ? { quotas: rules } : { default_quotas: rules.length === 0 ? null : rules });
      })}
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
