// Fields for amounts of limits: each limited, unlimited, or inherited.
import { Group, NativeSelect, NumberInput } from "@mantine/core";
import type { ApiFailure } from "../../api/client.ts";
import type { LimitAmount } from "../../api/limit-amounts.ts";
import { problemOf } from "./field-problem.ts";
import type { TypedNumber } from "./typed-number.ts";

/** `inherit` takes the value from elsewhere, such as the tier. */
interface Amount {
  how: "inherit" | "unlimited" | "own";
  /** The value if `how` is `own`; empty while nothing is typed. */
  value: TypedNumber;
}

interface AmountFieldsProps<Name extends LimitAmount["wire"]> {
  of: readonly (LimitAmount & { wire: Name })[];
  /** The inherited value in words; absent if nothing can be inherited. */
  inherits?: string;
  amounts: Record<Name, Amount>;
  /** The server's error for the last request. */
  error: ApiFailure | null;
  change(amounts: Record<Name, Amount>): void;
}

export function AmountFields<Name extends LimitAmount["wire"]>(props: AmountFieldsProps<Name>) {
  const { of: fields, inherits, amounts, error, change } = props;
  const hows = [
    ...(inherits === undefined ? [] : [{ value: "inherit", label: inherits }]),
    { value: "unlimited", label: "No limit" },
    { value: "own", label: inherits === undefined ? "Limit" : "Own limit" },
  ];
  return fields.map(({ wire, label, unit, least, most }) => {
    const amount = amounts[wire];
    const isOwn = amount.how === "own";
    const problem = problemOf(error, wire);
    const set = (part: Partial<Amount>) => change({ ...amounts, [wire]: { ...amount, ...part } });
    return (
      <Group key={wire} align="end" gap="xs" grow preventGrowOverflow={false}>
        <NativeSelect
          label={label}
          data={hows}
          value={amount.how}
          error={isOwn ? undefined : problem}
          onChange={(event) => set({ how: event.currentTarget.value as Amount["how"] })}
          miw={170}
        />
        {isOwn && (
          <NumberInput
            label={unit.charAt(0).toUpperCase() + unit.slice(1)}
            value={amount.value}
            min={least}
            max={most}
            allowDecimal={unit === "USD"}
            allowNegative={false}
            thousandSeparator=","
            hideControls
            required
            error={problem}
            onChange={(value) => set({ value })}
            miw={140}
          />
        )}
      </Group>
    );
  });
}

/** Converts a limit of the API, where null means no limit. */
export function amountOf(limit: number | null): Amount {
  return limit === null ? { how: "unlimited", value: "" } : { how: "own", value: limit };
}

export function limitOf({ how, value }: Amount): number | null {
  return how === "own" ? Number(value) : null;
}

/** Converts an override of the API, where null means that the value is inherited. */
export function amountOfOverride(override: number | "unlimited" | null): Amount {
  if (override === null) return { how: "inherit", value: "" };
  return override === "unlimited" ? { how: "unlimited", value: "" } : { how: "own", value: override };
}

export function overrideOf({ how, value }: Amount): number | "unlimited" | null {
  if (how === "inherit") return null;
  return how === "unlimited" ? "unlimited" : Number(value);
}
