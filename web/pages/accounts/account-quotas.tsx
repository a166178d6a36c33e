// The quotas per window of an account: the tier's quotas, or a list that replaces the tier's quotas.
import { NativeSelect, Stack } from "@mantine/core";
import type { QuotaDraft } from "../../parts/quotas/quota-draft.ts";
import { QuotaFields } from "../../parts/quotas/quota-fields.tsx";

interface AccountQuotasProps {
  /** The account's own quotas; null means that the tier's quotas apply. */
  quotas: QuotaDraft[] | null;
  error: string | undefined;
  change(quotas: QuotaDraft[] | null): void;
}

export function AccountQuotas({ quotas, error, change }: AccountQuotasProps) {
  return (
    <Stack gap="sm">
      <NativeSelect
        label="Quotas"
        data={[
          { value: "tier", label: "Same as the tier" },
          { value: "own", label: "Own quotas" },
        ]}
        value={quotas === null ? "tier" : "own"}
        onChange={(event) => change(event.currentTarget.value === "own" ? [] : null)}
        error={quotas === null ? error : undefined}
      />
      {quotas !== null && (
        <QuotaFields
          quotas={quotas}
          error={error}
          about="These quotas replace all quotas of the tier. Each environment is counted separately. An empty list means no quotas."
          change={change}
        />
      )}
    </Stack>
  );
}
