// One entry of the price list in full, and for operators the models that may use it.
import { Divider, Stack } from "@mantine/core";
import type { ListedPrice, ManagedModel } from "../../../api/types.ts";
import { RecordTitle } from "../../../parts/page/section.tsx";
import { CopyAction } from "../../../parts/secrets/copy.tsx";
import { Facts } from "../../../parts/words/facts.tsx";
import { count } from "../../../parts/words/figures.ts";
import { Note } from "../../../parts/words/note.tsx";
import { PriceRates } from "./price-rates.tsx";
import { TakePrice } from "./take-price.tsx";

interface ListedPriceViewProps {
  listed: ListedPrice;
  /** The source of the price and its date. */
  source: string;
  /** The models that may use the price; undefined for users who are not operators. */
  models: readonly ManagedModel[] | undefined;
}

export function ListedPriceView({ listed, source, models }: ListedPriceViewProps) {
  const { id, price, context_length: context } = listed;
  return (
    <Stack gap="lg">
      <RecordTitle>{id}</RecordTitle>
      <PriceRates price={price} />
      <Facts
        facts={[
          ["Context", context === null ? "unknown" : `${count(context)} tokens`],
          [
            "Name for price_of",
            <span key="name" style={{ overflowWrap: "anywhere" }}>
              {id} <CopyAction value={id} label="Copy the name" />
            </span>,
          ],
        ]}
      />
      <Note>{source}</Note>
      {models && (
        <>
          <Divider />
          <TakePrice listed={listed} models={models} />
        </>
      )}
    </Stack>
  );
}
