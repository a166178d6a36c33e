// The fields for a key's own limits.
import { Grid, Group, Input, NativeSelect, NumberInput } from "@mantine/core";
import { keyAmounts } from "../../parts/words/amounts.ts";
import { span } from "../../parts/words/figures.ts";
import type { Field, KeyDraft } from "./key-draft.ts";

interface LimitFieldsProps {
  draft: KeyDraft;
  change(part: Partial<KeyDraft>): void;
  errorOf(field: Field): string | undefined;
}

const windows: readonly [number, string][] = [
  [1, "second"],
  [60, "minute"],
  [3_600, "hour"],
  [86_400, "day"],
];

/** The fields for a key's limits other than spend. */
export function LimitFields({ draft, change, errorOf }: LimitFieldsProps) {
  const isUsual = windows.some(([seconds]) => seconds === draft.windowSeconds);
  const choices = isUsual ? windows : [...windows, [draft.windowSeconds, span(draft.windowSeconds)] as const];
  return (
    <Input.Wrapper
      label="Key limits"
      labelElement="div"
      description="In addition to the account's limits. Leave empty for no limit."
    >
      <Grid gap="md" mt="xs">
        <Grid.Col span={{ base: 12, xs: 6 }}>
          <Input.Wrapper label="Requests" labelElement="div" error={errorOf("rate_limit")}>
            <Group gap={4} wrap="nowrap" align="start">
              <NumberInput
                aria-label="Requests"
                placeholder="No limit"
                value={draft.rateLimit}
                onChange={(rateLimit) => change({ rateLimit })}
                error={errorOf("rate_limit") !== undefined}
                {...{ min: 1, max: 1_000_000, allowDecimal: false, allowNegative: false, thousandSeparator: "," }}
                hideControls
              />
              <NativeSelect
                aria-label="Time for the request limit"
                w="8rem"
                style={{ flexShrink: 0 }}
                value={String(draft.windowSeconds)}
                onChange={(event) => change({ windowSeconds: Number(event.currentTarget.value) })}
                data={choices.map(([seconds, name]) => ({ value: String(seconds), label: `/ ${name}` }))}
              />
            </Group>
          </Input.Wrapper>
        </Grid.Col>
        <Grid.Col span={{ base: 12, xs: 6 }}>
          <AmountFields unit="tokens" {...{ draft, change, errorOf }} />
        </Grid.Col>
      </Grid>
    </Input.Wrapper>
  );
}

/** The fields for the monthly amounts of one unit. */
export function AmountFields(props: LimitFieldsProps & { unit: (typeof keyAmounts)[number]["unit"] }) {
  const { unit: wanted, draft, change, errorOf } = props;
  return keyAmounts
    .filter(({ unit }) => unit === wanted)
    .map(({ wire, label, unit, least, most }) => (
      <NumberInput
        key={wire}
        label={label}
        placeholder="No limit"
        value={draft.amounts[wire]}
        onChange={(value) => change({ amounts: { ...draft.amounts, [wire]: value } })}
        error={errorOf(wire)}
        {...{ min: least, max: most, allowDecimal: unit === "USD", allowNegative: false, thousandSeparator: "," }}
        {...(unit === "USD" ? { prefix: "$" } : {})}
        hideControls
      />
    ));
}
