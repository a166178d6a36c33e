// What the models of this server cost, those without a price first.
import { Table, Text } from "@mantine/core";
import type { ManagedModel } from "../../../api/types.ts";
import { Empty } from "../../../parts/page/empty.tsx";
import { NameButton, PlainLink } from "../../../parts/page/links.tsx";
import { ScrollRegion } from "../../../parts/page/scroll-region.tsx";
import { Section } from "../../../parts/page/section.tsx";
import { rate } from "../../../parts/words/figures.ts";
import { ModelName } from "../../../parts/words/model-name.tsx";
import { State } from "../../../parts/words/state.tsx";
import type { ShownModel } from "../managed-models.ts";

interface OwnPricesProps {
  models: readonly ShownModel[];
  isOperator: boolean;
  /** Shows one of the price list. */
  show(id: string): void;
}

export function OwnPrices({ models, isOperator, show }: OwnPricesProps) {
  const sorted = models.toSorted((a, b) => Number(a.status.price !== null) - Number(b.status.price !== null));
  return (
    <Section
      title="Models of this server"
      about="USD per million tokens. What a model without a price uses is not counted as spend, and no quota in USD bounds it."
    >
      {sorted.length === 0 ? (
        <Empty title="No models">There is none yet whose price could be shown.</Empty>
      ) : (
        <ScrollRegion className="long-table" label="Prices of this server" style={{ maxHeight: "24rem" }}>
          <Table stickyHeader>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Model</Table.Th>
                <Table.Th ta="right">Input</Table.Th>
                <Table.Th ta="right" visibleFrom="sm">
                  Cached
                </Table.Th>
                <Table.Th ta="right">Output</Table.Th>
                <Table.Th visibleFrom="sm">Its price is</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {sorted.map(({ status: { id, price }, managed }) => (
                <Table.Tr key={id}>
                  <Table.Td>
                    {isOperator ? (
                      <PlainLink href={`/catalog?model=${encodeURIComponent(id)}`}>
                        <ModelName name={id} size="sm" />
                      </PlainLink>
                    ) : (
                      <ModelName name={id} size="sm" />
                    )}
                  </Table.Td>
                  {price ? (
                    <>
                      <Table.Td ta="right" className="numeric">
                        {rate(price.input)}
                      </Table.Td>
                      <Table.Td ta="right" className="numeric" visibleFrom="sm">
                        {price.cached_input === undefined ? "as input" : rate(price.cached_input)}
                      </Table.Td>
                      <Table.Td ta="right" className="numeric">
                        {rate(price.output)}
                      </Table.Td>
                    </>
                  ) : (
                    <Table.Td colSpan={3} ta="center">
                      <State kind="warning">No price</State>
                    </Table.Td>
                  )}
                  <Table.Td visibleFrom="sm">
                    <Whence managed={managed} hasPrice={price !== null} show={show} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollRegion>
      )}
    </Section>
  );
}

interface WhenceProps {
  managed: ManagedModel | undefined;
  hasPrice: boolean;
  show(id: string): void;
}

function Whence({ managed, hasPrice, show }: WhenceProps) {
  if (!hasPrice) return <Text size="sm">{managed ? "to be set" : "not set"}</Text>;
  const listed = managed && !managed.settings?.price ? managed.settings?.price_of : undefined;
  if (!listed) return <Text size="sm">{managed?.source === "file" ? "set in headrace.yaml" : "set here"}</Text>;
  return <NameButton show={() => show(listed)}>{listed}</NameButton>;
}
