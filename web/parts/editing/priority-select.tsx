// The priority of requests, of a key or of a tier's accounts.
import { NativeSelect } from "@mantine/core";
import type { Tier } from "../../api/types.ts";

type Priority = Tier["priority"];

interface PrioritySelectProps {
  label: string;
  description: string;
  /** The label of the option for no priority; if absent, a priority is required. */
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
