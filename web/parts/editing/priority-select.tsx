// How urgent requests may be, of a key or of the accounts of a tier.
import { NativeSelect } from "@mantine/core";
import type { Tier } from "../../api/types.ts";

type Priority = Tier["priority"];

interface PrioritySelectProps {
  label: string;
  description: string;
  /** How it is called that none is set; left out: one has to be. */
  unset?: string;
  value: Priority | null;
  error: string | undefined;
  change(priority: Priority | null): void;
}

const choices: readonly { value: Priority; label: string }[] = [
  { value: "high", label: "High" },
  { value: "normal", label: "Normal" },
  { value: "low", label: "Low" },
];

export function PrioritySelect({ label, description, unset, value, error, change }: PrioritySelectProps) {
  const none = unset === undefined ? [] : [{ value: "", label: unset }];
  return (
    <NativeSelect
      label={label}
      description={description}
      data={[...none, ...choices]}
      value={value ?? ""}
      onChange={(event) => change(choices.find((one) => one.value === event.currentTarget.value)?.value ?? null)}
      error={error}
    />
  );
}
