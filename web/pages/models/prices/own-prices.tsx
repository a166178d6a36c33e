// The prices of this server's models, those without a price first.
import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { ManagedModel } from "../../../api/types.ts";
import { Empty } from "../../../parts/page/empty.tsx";
import { NameButton, PlainLink } from "../../../parts/page/links.tsx";
import { Section } from "../../../parts/page/section.tsx";
import type { Column } from "../../../parts/table/column.ts";
import { allRows, LongTable } from "../../../parts/table/long-table.tsx";
import { rate } from "../../../parts/words/figures.ts";
import { State } from "../../../parts/words/state.tsx";
import type { ShownModel } from "../managed-models.ts";
import type { Price } from "./price-words.ts";

interface OwnPricesProps {
  models: readonly ShownModel[];
  isOperator: boolean;
  /** Shows an entry of the price list. */
  show(id: string): void;
}

export function OwnPrices({ models, isOperator, show }: OwnPricesProps) {
  const items = models.toSorted((a, b) => Number(a.status.price !== null) - Number(b.status.price !== null));
  const columns: Column<ShownModel>[] = [
    {
      name: "model",
      head: "Model",
      cell: ({ status: { id, price } }) => (
        <>
          {isOperator ? <PlainLink href={`/catalog?model=${encodeURIComponent(id)}`}>{id}</PlainLink> : id}
          {price === null && <State kind="warning">No price</State>}
        </>
      ),
    },
    figure("Input", ({ price }) => price && rate(price.input)),
    { ...figure("Cached", ({ price }) => price && cachedText(price)), wideOnly: true },
    figure("Output", ({ price }) => price && rate(price.output)),
    {
      ...{ name: "whence", head: "Price source", wideOnly: true, width: "14rem" },
      cell: ({ status, managed }) => <Whence managed={managed} hasPrice={status.price !== null} show={show} />,
    },
  ];
  return (
    <Section
      title="Models of this server"
      about="USD per million tokens. Usage of a model without a price is not counted as spend, and USD limits don't apply to it."
    >
      <LongTable
        label="Prices of this server"
        listing={allRows(items)}
        columns={columns}
        keyOf={({ status }) => status.id}
        height="24rem"
        fixed
        empty={<Empty title="No models">This server has no models yet.</Empty>}
      />
    </Section>
  );
}

function figure(head: string, cell: (status: ShownModel["status"]) => ReactNode): Column<ShownModel> {
  return { name: head, head, numeric: true, width: "5.25rem", cell: ({ status }) => cell(status) };
}

function cachedText({ cached_input: cached }: Price): string {
  return cached === undefined ? "same as input" : rate(cached);
}

interface WhenceProps {
  managed: ManagedModel | undefined;
  hasPrice: boolean;
  show(id: string): void;
}

function Whence({ managed, hasPrice, show }: WhenceProps) {
  if (!hasPrice) return <Text size="sm">not set</Text>;
  const listed = managed && !managed.settings?.price ? managed.settings?.price_of : undefined;
  if (!listed)
    return <Text size="sm">{managed?.source === "file" ? "set in headrace.yaml" : "set in the dashboard"}</Text>;
  return <NameButton show={() => show(listed)}>{listed}</NameButton>;
}
