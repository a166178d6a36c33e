// The price of one model with all rates and their source, or a link to set a price.
import { Group, Stack, Text, Title } from "@mantine/core";
import type { ManagedModel } from "../../../api/types.ts";
import { PlainLink, TextLink } from "../../../parts/page/links.tsx";
import { State } from "../../../parts/words/state.tsx";
import { priceText } from "../managed-words.ts";
import { PriceRates } from "./price-rates.tsx";

export function ModelPrice({ model }: { model: ManagedModel }) {
  const { id, price, settings, source, deployments } = model;
  const listed = settings?.price ? undefined : settings?.price_of;
  return (
    <div>
      <Group justify="space-between" mb="xs">
        <Title order={3} size="sm">
          Price
        </Title>
        {price === null && <State kind="warning">No price</State>}
      </Group>
      {price === null ? (
        <Stack gap={4}>
          <Text size="sm">
            No price is set. Usage is not counted as spend, and USD limits don't apply. Set a price of 0 for a free
            model.
          </Text>
          <PlainLink href={`/prices?search=${encodeURIComponent(deployments[0]?.model ?? id)}`}>
            Find in price list
          </PlainLink>
        </Stack>
      ) : (
        <Stack gap="sm">
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {priceText(price)}.{" "}
            {listed ? (
              <>
                Same price as <TextLink href={`/prices?price=${encodeURIComponent(listed)}`}>{listed}</TextLink> in the
                price list.
              </>
            ) : source === "file" ? (
              "Set in headrace.yaml."
            ) : (
              "Set in the dashboard."
            )}
          </Text>
          {hasMore(price) && <PriceRates price={price} />}
        </Stack>
      )}
    </div>
  );
}

/** Reports whether a price has more than the three rates that its one-line form shows. */
function hasMore(price: NonNullable<ManagedModel["price"]>): boolean {
  return Object.keys(price).some((name) => !["input", "cached_input", "output"].includes(name));
}
