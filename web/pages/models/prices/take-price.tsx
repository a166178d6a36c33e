// Assigns an entry of the price list to a model; the model's price then follows the list.
import { Text } from "@mantine/core";
import { useState } from "react";
import { call } from "../../../api/client.ts";
import type { ListedPrice, ManagedModel, UpdateManagedModelRequest } from "../../../api/types.ts";
import { Choice } from "../../../parts/editing/choice.tsx";
import { problemOf } from "../../../parts/editing/field-problem.ts";
import { Form } from "../../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../../parts/editing/notified-change.ts";
import { Note } from "../../../parts/words/note.tsx";
import { managedPathOf, staleWithModels } from "../managed-models.ts";
import { priceText } from "../managed-words.ts";

interface TakePriceProps {
  listed: ListedPrice;
  models: readonly ManagedModel[];
}

export function TakePrice({ listed, models }: TakePriceProps) {
  // Models that the configuration file declares are read-only here.
  const open = models.filter(({ source }) => source !== "file");
  const [chosen, setChosen] = useState<string | null>(() => likely(listed, open)?.id ?? null);
  const model = open.find(({ id }) => id === chosen);
  const take = useNotifiedChange(
    (id: string) => {
      const body: UpdateManagedModelRequest = { price: null, price_of: listed.id };
      return call<ManagedModel>("PATCH", managedPathOf(id), { body });
    },
    {
      stale: staleWithModels,
      said: (saved) => `${saved.id} now has the price of ${listed.id}, starting with the next request.`,
    },
  );
  if (open.length === 0) {
    return <Note>All models are set in headrace.yaml. To use this price, add it there as price_of: {listed.id}</Note>;
  }
  const hasIt = model?.settings?.price_of === listed.id && model.settings.price === null;
  return (
    <Form
      sending={take}
      fields={["price_of"]}
      action="Use this price"
      disabled={!model || hasIt}
      submit={() => model && take.mutate(model.id)}
    >
      <Choice
        label="Use this price for"
        description="Choose a model of this server. Prices are never set automatically, because a model with the same name may run on your own machine."
        data={open.map(({ id }) => id)}
        value={chosen}
        onChange={setChosen}
        searchable
        limit={50}
        nothingFoundMessage="No matching model"
        error={problemOf(take.error, "price_of")}
      />
      {model && (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {hasIt ? "This model has this price." : `Current price: ${priceText(model.price).toLowerCase()}.`}
        </Text>
      )}
    </Form>
  );
}

/** Returns the unpriced model whose id or upstream name matches the entry. */
function likely({ model, id }: ListedPrice, models: readonly ManagedModel[]): ManagedModel | undefined {
  return models.find(({ id: own, price, deployments }) => {
    const names = [own, ...deployments.map((deployment) => deployment.model)];
    return price === null && names.some((name) => name === model || name === id);
  });
}
