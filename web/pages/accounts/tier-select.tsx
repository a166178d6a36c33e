// The select field for an account's tier.
import { NativeSelect } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { TierList } from "../../api/types.ts";
import { tierSummary } from "./limit-text.ts";

interface TierSelectProps {
  value: string;
  error?: string | undefined;
  change(tier: string): void;
}

export function TierSelect({ value, error, change }: TierSelectProps) {
  const tiers = useRead<TierList>("/v1/admin/tiers");
  const known = tiers.data?.data ?? [];
  const chosen = known.find(({ name }) => name === value);
  const names = known.map(({ name }) => name);
  return (
    <NativeSelect
      label="Tier"
      // The account may have a tier that no longer exists; the select field must still show its name.
      data={names.includes(value) ? names : [value, ...names]}
      value={value}
      error={error ?? tiers.error?.message}
      description={
        chosen ? tierSummary(chosen) : tiers.data ? "This tier was deleted. The limits of the tier free apply." : " "
      }
      inputWrapperOrder={["label", "input", "description", "error"]}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}
