// A full price: each rate, and the variants by time, prompt length or tier.
import { List, Stack, Text } from "@mantine/core";
import { Facts } from "../../../parts/words/facts.tsx";
import { SmallNote } from "../../../parts/words/note.tsx";
import { conditionText, type Price, ratesOf, variantText } from "./price-words.ts";

export function PriceRates({ price }: { price: Price }) {
  const { variants = [] } = price;
  return (
    <Stack gap="sm">
      <Facts facts={ratesOf(price)} />
      {variants.length > 0 && (
        <div>
          <Text size="sm" fw={500}>
            Other rates
          </Text>
          <List size="sm">
            {variants.map((variant) => (
              <List.Item key={JSON.stringify(variant)}>
                {conditionText(variant)}: {variantText(variant)}
              </List.Item>
            ))}
          </List>
        </div>
      )}
      <SmallNote>
        USD per million tokens, or per unit where the name says so. Cached and written tokens without a rate cost the
        same as input, and reasoning tokens the same as output.
      </SmallNote>
    </Stack>
  );
}
