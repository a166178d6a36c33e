// An amount that may be limited, not limited, or left to what else says it.
import { Group, NativeSelect, NumberInput } from "@mantine/core";
import type { TypedNumber } from "./typed-number.ts";

/** `inherit`: as something else says, such as the tier. */
interface Amount {
  how: "inherit" | "unlimited" | "own";
  /** Where `how` is `own`; empty while nothing is typed. */
  value: TypedNumber;
}

interface AmountFieldProps {
  label: string;
  /** Of the number: "Tokens". */
  unit: string;
  /** What is in force where it inherits; left out where nothing can be inherited. */
  inherits?: string;
  amount: Amount;
  decimals?: boolean;
  error?: string | undefined;
  change(amount: Amount): void;
}

export function AmountField(props: AmountFieldProps) {
  const { label, unit, inherits, amount, decimals = false, error, change } = props;
  const hows = [
    ...(inherits === undefined ? [] : [{ value: "inherit", label: inherits }]),
    { value: "unlimited", label: "No limit" },
    { value: "own", label: "A limit of its own" },
  ];
  const isOwn = amount.how === "own";
  return (
    <Group align="end" gap="xs" grow preventGrowOverflow={false}>
      <NativeSelect
        label={label}
        data={
          inherits === undefined ? hows.map((how) => (how.value === "own" ? { ...how, label: "Limit" } : how)) : hows
        }
        value={amount.how}
        error={isOwn ? undefined : error}
        onChange={(event) => change({ ...amount, how: event.currentTarget.value as Amount["how"] })}
        miw={170}
      />
      {isOwn && (
        <NumberInput
          label={unit}
          value={amount.value}
          min={0}
          max={decimals ? 9_000_000 : 1e15}
          allowDecimal={decimals}
          allowNegative={false}
          thousandSeparator=","
          hideControls
          required
          error={error}
          onChange={(value) => change({ ...amount, value })}
          miw={140}
        />
      )}
    </Group>
  );
}

/** As the API has it, where null is no limit. */
export function amountOf(limit: number | null): Amount {
  return limit === null ? { how: "unlimited", value: "" } : { how: "own", value: limit };
}

export function limitOf({ how, value }: Amount): number | null {
  return how === "own" ? Number(value) : null;
}

/** As the API has it, where null is to inherit. */
export function amountOfOverride(override: number | "unlimited" | null): Amount {
  if (override === null) return { how: "inherit", value: "" };
  return override === "unlimited" ? { how: "unlimited", value: "" } : { how: "own", value: override };
}

export function overrideOf({ how, value }: Amount): number | "unlimited" | null {
  if (how === "inherit") return null;
  return how === "unlimited" ? "unlimited" : Number(value);
}
