// The figures of a tier, new or known.
import { Button, Checkbox, Group, Stack, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type FormEvent, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Tier, TierRequest } from "../../api/types.ts";
import { AmountField, amountOf, limitOf } from "../../parts/editing/amount-field.tsx";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { allEnvironments, environmentChoices } from "../../parts/words/environments.ts";
import { count } from "../../parts/words/figures.ts";

interface TierFormProps {
  /** Left out: a new one. */
  tier?: Tier;
  /** Of all tiers, which a new one must not take. */
  names: readonly string[];
  close(): void;
}

const fields = ["name", "requests_per_minute", "tokens_per_minute", "monthly_tokens", "monthly_spend", "environments"];

export function TierForm({ tier, names, close }: TierFormProps) {
  const [name, setName] = useState(tier?.name ?? "");
  const [requests, setRequests] = useState(amountOf(tier ? tier.requests_per_minute : 60));
  const [tokens, setTokens] = useState(amountOf(tier ? tier.tokens_per_minute : 60_000));
  const [monthlyTokens, setMonthlyTokens] = useState(amountOf(tier?.monthly_tokens ?? null));
  const [monthlySpend, setMonthlySpend] = useState(amountOf(tier?.monthly_spend ?? null));
  const [where, setWhere] = useState<string[]>(tier?.environments ?? ["live", "test"]);
  const save = useChange(
    (body: TierRequest) => call<Tier>("PUT", `/v1/admin/tiers/${encodeURIComponent(name)}`, { body }),
    {
      stale: ["/v1/admin/tiers", "/v1/admin/accounts", "/v1/account", "/v1/tiers"],
      leave: close,
      done(saved) {
        const whose =
          saved.accounts === 0 ? "" : `, for ${count(saved.accounts)} ${saved.accounts === 1 ? "account" : "accounts"}`;
        notifications.show({ message: `The tier ${saved.name} is saved${whose}.` });
      },
    },
  );
  const isTaken = !tier && names.includes(name);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({
      ...{ requests_per_minute: limitOf(requests), tokens_per_minute: limitOf(tokens) },
      ...{ monthly_tokens: limitOf(monthlyTokens), monthly_spend: limitOf(monthlySpend) },
      environments: where as Tier["environments"],
    });
  };
  const amount = (field: string) => ({ error: problemOf(save.error, field) });
  const problem = problemBeside(save.error, fields);
  return (
    <form onSubmit={submit}>
      <Stack>
        {!tier && (
          <TextInput
            label="Name"
            description="Lower-case letters, digits, dots, underscores and hyphens. It stays."
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={isTaken ? "There is a tier of this name: open it to change it." : problemOf(save.error, "name")}
            maxLength={63}
            required
            data-autofocus
          />
        )}
        <AmountField
          label="Requests per minute"
          unit="Requests"
          amount={requests}
          change={setRequests}
          {...amount("requests_per_minute")}
        />
        <AmountField
          label="Tokens per minute"
          unit="Tokens"
          amount={tokens}
          change={setTokens}
          {...amount("tokens_per_minute")}
        />
        <AmountField
          label="Tokens per month"
          unit="Tokens"
          amount={monthlyTokens}
          change={setMonthlyTokens}
          {...amount("monthly_tokens")}
        />
        <AmountField
          label="Spend per month"
          unit="USD"
          decimals
          amount={monthlySpend}
          change={setMonthlySpend}
          {...amount("monthly_spend")}
        />
        <Checkbox.Group
          label="Applies in"
          description="In the other environments this tier sets no limits."
          value={where}
          onChange={setWhere}
          error={problemOf(save.error, "environments")}
        >
          <Group mt="xs">
            {environmentChoices(allEnvironments).map(({ value, label }) => (
              <Checkbox key={value} value={value} label={label} />
            ))}
          </Group>
        </Checkbox.Group>
        {problem && <Failure error={problem} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending} disabled={isTaken}>
            {tier ? "Save" : "Create tier"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
