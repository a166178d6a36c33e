// The list prices of public models, searched by vendor and model, each with a full view.
import { Group } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import type { Listing } from "../../../api/queries.ts";
import type { ListedPrice, PriceList } from "../../../api/types.ts";
import { Choice } from "../../../parts/editing/choice.tsx";
import { SearchField } from "../../../parts/filters/search-field.tsx";
import { NameButton } from "../../../parts/page/links.tsx";
import { NoneFound } from "../../../parts/page/none-found.tsx";
import { Section } from "../../../parts/page/section.tsx";
import type { Column } from "../../../parts/table/column.ts";
import { LongTable } from "../../../parts/table/long-table.tsx";
import { count, rate } from "../../../parts/words/figures.ts";
import { SmallNote } from "../../../parts/words/note.tsx";

interface ListedPricesProps {
  listing: Listing<ListedPrice>;
  /** The source of the price list; undefined while loading. */
  list: PriceList | undefined;
  search: string;
  vendor: string;
  change(part: { search?: string; vendor?: string }): void;
  show(id: string): void;
}

export function ListedPrices({ listing, list, search, vendor, change, show }: ListedPricesProps) {
  const vendors = list?.vendors ?? [];
  const columns: Column<ListedPrice>[] = [
    {
      name: "model",
      head: "Model",
      cell: ({ id, model, vendor: by }) => (
        <>
          <NameButton show={() => show(id)}>{model}</NameButton>
          <SmallNote>{vendors.find((one) => one.id === by)?.name ?? by}</SmallNote>
        </>
      ),
    },
    {
      ...{ name: "context", head: "Context", numeric: true, wideOnly: true, width: "7rem" },
      cell: ({ context_length: tokens }) => (tokens === null ? "unknown" : count(tokens)),
    },
    ...(["input", "cached_input", "cache_write", "output"] as const).map(
      (name): Column<ListedPrice> => ({
        ...{ name, head: heads[name], numeric: true },
        ...(name === "input" || name === "output" ? { width: "5.25rem" } : { width: "7.25rem", wideOnly: true }),
        cell: ({ price }) => (price[name] === undefined ? "same as input" : rate(price[name])),
      }),
    ),
    {
      ...{ name: "more", head: "More rates", numeric: true, wideOnly: true, width: "7rem" },
      cell: ({ price }) => moreRates(price) || "none",
    },
  ];
  return (
    <Section title="Prices of vendors" about={list && aboutText(list)}>
      <Group gap="sm" align="end">
        <SearchField
          label="Search"
          placeholder="Vendor and model"
          leftSection={<SearchIcon />}
          value={search}
          maxLength={200}
          change={(text) => change({ search: text })}
          w={{ base: "100%", xs: 260 }}
        />
        <Choice
          label="Vendor"
          data={[
            { value: "", label: "All" },
            ...vendors.map(({ id, name, models }) => ({ value: id, label: `${name} (${count(models)})` })),
          ]}
          value={vendor}
          onChange={(value) => change({ vendor: value ?? "" })}
          allowDeselect={false}
          searchable
          w={{ base: "100%", xs: 260 }}
        />
      </Group>
      <LongTable
        label="The price list"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={58}
        fixed
        choose={({ id }) => show(id)}
        empty={
          <NoneFound
            what="price"
            showAll={search === "" && vendor === "" ? undefined : () => change({ search: "", vendor: "" })}
            filtered="No model name in the price list contains all of these words."
          >
            {null}
          </NoneFound>
        }
      />
    </Section>
  );
}

const heads = { input: "Input", cached_input: "Cached", cache_write: "Cache write", output: "Output" } as const;

function aboutText({ source, date, vendors }: PriceList): string {
  const models = vendors.reduce((sum, vendor) => sum + vendor.models, 0);
  return `Prices of public models in USD per million tokens: ${count(models)} prices of ${count(vendors.length)} vendors, as of ${date}, from ${source}. The list is part of this version and needs no network. A model uses a listed price only if an operator sets it.`;
}

/** Returns how many rates there are beyond the four in the table. */
function moreRates(price: ListedPrice["price"]): number {
  const others = Object.keys(price).filter((name) => name !== "variants" && !Object.hasOwn(heads, name));
  return others.length + (price.variants?.length ?? 0);
}
