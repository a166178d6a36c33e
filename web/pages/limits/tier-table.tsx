// The tiers of this server side by side, with the account's own marked.
import { Badge, Group, Paper, Table, Title } from "@mantine/core";
import { limitAmounts } from "../../api/limit-amounts.ts";
import type { TierOverview } from "../../api/types.ts";
import { ScrollRegion } from "../../parts/page/scroll-region.tsx";
import { amountFigure } from "../../parts/words/amounts.ts";
import { environmentList } from "../../parts/words/environments.ts";
import { Note } from "../../parts/words/note.tsx";
import { quotasInWords } from "../../parts/words/quotas.ts";

export function TierTable({ tiers }: { tiers: readonly TierOverview[] }) {
  return (
    <Paper withBorder p="md" component="div">
      <Title order={2} fz="md">
        Tiers
      </Title>
      <Note mb="xs">Only an operator of this server can change the tier of an account.</Note>
      <ScrollRegion className="long-table" label="All tiers">
        <Table verticalSpacing="xs" miw={720} className="tier-table">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Tier</Table.Th>
              {limitAmounts.map(({ wire, label }) => (
                <Table.Th key={wire} ta="right">
                  {label}
                </Table.Th>
              ))}
              <Table.Th>Quotas</Table.Th>
              <Table.Th>Applies in</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {tiers.map((tier) => (
              <Table.Tr key={tier.name} {...(tier.current ? { "aria-current": "true" as const, fw: 600 } : {})}>
                <Table.Td>
                  <Group gap="xs" wrap="nowrap">
                    {tier.name}
                    {tier.current && (
                      <Badge size="sm" variant="light" tt="none" flex="none">
                        yours
                      </Badge>
                    )}
                  </Group>
                </Table.Td>
                {limitAmounts.map((amount) => (
                  <Table.Td key={amount.wire} ta="right">
                    {amountFigure(amount, tier[amount.wire])}
                  </Table.Td>
                ))}
                <Table.Td>{quotasInWords(tier.quotas)}</Table.Td>
                <Table.Td>{environmentList(tier.environments) || "no environment"}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollRegion>
    </Paper>
  );
}
