// The form fields for a price: typed rates, or an entry of the price list.
import { Button, Group, Input, NumberInput, SegmentedControl, Select, Stack } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import type { ApiFailure } from "../../../api/client.ts";
import { useRead } from "../../../api/queries.ts";
import type { PriceList } from "../../../api/types.ts";
import { problemOf } from "../../../parts/editing/field-problem.ts";
import type { TypedNumber } from "../../../parts/editing/typed-number.ts";
import { SmallNote } from "../../../parts/words/note.tsx";
import { priceText } from "../managed-words.ts";
import type { ModelForm } from "../model-form.ts";

interface PriceFieldsProps {
  form: ModelForm;
  /** An error of the rates as a whole. */
  problem: string | undefined;
  error: ApiFailure | null;
  change(changed: Partial<ModelForm>): void;
}

export function PriceFields({ form, problem, error, change }: PriceFieldsProps) {
  return (
    <Stack gap="xs">
      <Input.Wrapper label="Price" labelElement="div">
        <SegmentedControl
          aria-label="Price"
          fullWidth
          size="xs"
          mt={4}
          value={form.priced}
          onChange={(priced) => change({ priced: priced as ModelForm["priced"] })}
          data={[
            { value: "own", label: "Custom" },
            { value: "list", label: "From the price list" },
          ]}
        />
      </Input.Wrapper>
      {form.priced === "list" ? (
        <FromList form={form} error={problemOf(error, "price_of")} change={change} />
      ) : (
        <Group grow align="start">
          <Usd
            label="Price of input"
            value={form.input}
            error={problem ?? problemOf(error, "input")}
            change={(input) => change({ input })}
          />
          <Usd
            label="Price of cached input"
            hint="Defaults to the input price."
            value={form.cachedInput}
            error={problemOf(error, "cached_input")}
            change={(cachedInput) => change({ cachedInput })}
          />
          <Usd
            label="Price of output"
            value={form.output}
            error={problem === undefined ? problemOf(error, "output") : true}
            change={(output) => change({ output })}
          />
        </Group>
      )}
      {form.priced === "own" && Object.keys(form.otherRates).length > 0 && (
        <SmallNote>This model has other rates, which are kept. Change them through the API.</SmallNote>
      )}
    </Stack>
  );
}

interface FromListProps extends Pick<PriceFieldsProps, "form" | "change"> {
  error: string | undefined;
}

function FromList({ form, error, change }: FromListProps) {
  const [typed, setTyped] = useState(form.priceOf);
  const [search] = useDebouncedValue(typed, 300);
  const found = useRead<PriceList>("/v1/prices", { search, limit: 20 }, { keep: true });
  const chosen = useRead<PriceList>("/v1/prices", { search: form.priceOf, limit: 1 }, { enabled: form.priceOf !== "" });
  const listed = chosen.data?.data.find(({ id }) => id === form.priceOf);
  const names = (found.data?.data ?? []).map(({ id }) => id);
  return (
    <>
      <Select
        label="Model in the price list"
        description={`Vendor and model${found.data ? `; prices of ${found.data.date}` : ""}. A new version of Headrace may change them.`}
        placeholder="openai gpt"
        // The chosen entry stays in the options, whatever the search finds.
        data={[...new Set([...names, ...(form.priceOf === "" ? [] : [form.priceOf])])]}
        filter={({ options }) => options}
        value={form.priceOf === "" ? null : form.priceOf}
        searchValue={typed}
        onSearchChange={setTyped}
        onChange={(name) => change({ priceOf: name ?? "" })}
        searchable
        clearable
        nothingFoundMessage="No model name in the price list contains these words"
        comboboxProps={{ keepMounted: false }}
        error={error}
      />
      {listed && (
        <Group justify="space-between" gap="xs">
          <SmallNote>{priceText(listed.price)}</SmallNote>
          <Button
            variant="subtle"
            size="compact-sm"
            onClick={() => {
              const { input, cached_input: cachedInput = "", output, ...otherRates } = listed.price;
              change({ priced: "own", input, cachedInput, output, otherRates });
            }}
          >
            Customize these rates
          </Button>
        </Group>
      )}
    </>
  );
}

interface UsdProps {
  label: string;
  hint?: string;
  value: TypedNumber;
  /** `true` marks the field as wrong; the message stands beside another field. */
  error: string | true | undefined;
  change(value: TypedNumber): void;
}

function Usd({ label, hint = "Leave empty for no price.", value, error, change }: UsdProps) {
  return (
    <NumberInput
      label={label}
      description={`USD per million tokens. ${hint}`}
      value={value}
      onChange={change}
      min={0}
      allowNegative={false}
      hideControls
      {...(error === undefined ? {} : { error })}
    />
  );
}
