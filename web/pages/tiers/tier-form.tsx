// The form of a tier, new or existing.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { call, type Environment } from "../../api/client.ts";
import { type LimitAmount, limitAmounts } from "../../api/limit-amounts.ts";
import type { Tier, TierRequest } from "../../api/types.ts";
import { AmountFields, amountOf, limitOf } from "../../parts/editing/amount-fields.tsx";
import { EnvironmentBoxes } from "../../parts/editing/environment-boxes.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { PrioritySelect } from "../../parts/editing/priority-select.tsx";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { quotaDraftsOf, quotasError, quotasProblemOf, rulesOf } from "../../parts/quotas/quota-draft.ts";
import { QuotaFields } from "../../parts/quotas/quota-fields.tsx";
import { perAmount } from "../../parts/words/amounts.ts";
import { counted } from "../../parts/words/figures.ts";

interface TierFormProps {
  /** The tier to change; absent for a new tier. */
  tier?: Tier;
  /** The names of all tiers, which a new tier must not reuse. */
  names: readonly string[];
  close(): void;
}

const fields = ["name", ...limitAmounts.map(({ wire }) => wire), "quotas", "environments", "priority"];
/** The default limits of a new tier; all other amounts are unlimited. */
const usual: Partial<Record<LimitAmount["wire"], number>> = { requests_per_minute: 60, tokens_per_minute: 60_000 };

export function TierForm({ tier, names, close }: TierFormProps) {
  const [name, setName] = useState(tier?.name ?? "");
  const [amounts, setAmounts] = useState(
    perAmount(limitAmounts, ({ wire }) => amountOf(tier ? tier[wire] : (usual[wire] ?? null))),
  );
  const [quotas, setQuotas] = useState(() => quotaDraftsOf(tier?.quotas ?? []));
  const [found, setFound] = useState<string>();
  const [priority, setPriority] = useState<Tier["priority"]>(tier?.priority ?? "normal");
  const [where, setWhere] = useState<Environment[]>(tier?.environments ?? ["live", "test"]);
  const save = useNotifiedChange(
    (body: TierRequest) => call<Tier>("PUT", `/v1/admin/tiers/${encodeURIComponent(name)}`, { body }),
    {
      stale: ["/v1/admin/tiers", "/v1/admin/accounts", "/v1/account", "/v1/tiers"],
      leave: close,
      said({ name: saved, accounts }) {
        const whose = accounts === 0 ? "" : `, for ${counted(accounts, "account")}`;
        return `The tier ${saved} was saved${whose}.`;
      },
    },
  );
  const isTaken = !tier && names.includes(name);
  const quotaError = found ?? quotasProblemOf(save.error);
  const ref = useFirstProblem(quotaError);
  const submit = () => {
    const error = quotasError(quotas);
    setFound(error);
    if (error !== undefined) return;
    save.mutate({
      ...perAmount(limitAmounts, ({ wire }) => limitOf(amounts[wire])),
      quotas: rulesOf(quotas),
      environments: where,
      priority,
    });
  };
  return (
    <Form
      ref={ref}
      sending={save}
      fields={fields}
      action={tier ? "Save" : "Create tier"}
      disabled={isTaken}
      submit={submit}
      cancel={close}
    >
      {!tier && (
        <TextInput
          label="Name"
          description="Lower-case letters, digits, dots, underscores and hyphens. Cannot be changed later."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={isTaken ? "A tier with this name exists. Open that tier to change it." : problemOf(save.error, "name")}
          maxLength={63}
          required
          data-autofocus
        />
      )}
      <AmountFields of={limitAmounts} amounts={amounts} error={save.error} change={setAmounts} />
      <QuotaFields
        quotas={quotas}
        error={quotaError}
        about="These quotas apply to each account with this tier, in addition to the limits above. Each environment is counted separately."
        change={(changed) => {
          setQuotas(changed);
          setFound(undefined);
        }}
      />
      <EnvironmentBoxes
        label="Applies in"
        description="In the other environments this tier sets no limits."
        value={where}
        change={setWhere}
        mayBeEmpty
        error={problemOf(save.error, "environments")}
      />
      <PrioritySelect
        label="Priority"
        description="Who goes first when a model is busy, in all environments. Keys can have a lower priority."
        value={priority}
        change={(chosen) => setPriority(chosen ?? "normal")}
        error={problemOf(save.error, "priority")}
      />
    </Form>
  );
}
