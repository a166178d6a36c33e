// The replicas that share the database, and which of them answered.
import { Code, Group, Paper, Table, Title } from "@mantine/core";
import type { System } from "../../api/types.ts";
import { ScrollRegion } from "../../parts/page/scroll-region.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { Tag } from "../../parts/words/tag.tsx";

export function Replicas({ system: { replicas } }: { system: System }) {
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="sm">
        Replicas
      </Title>
      <ScrollRegion className="long-table" label="Replicas">
        <Table verticalSpacing="xs" miw={600}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Internal address</Table.Th>
              <Table.Th>Version</Table.Th>
              <Table.Th>Started</Table.Th>
              <Table.Th>Id</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {replicas.map((replica) => (
              <Table.Tr key={replica.id}>
                <Table.Td>
                  <Group gap="xs" wrap="nowrap">
                    <span>{replica.advertise_url ?? "no advertise URL"}</span>
                    {replica.current && <Tag>shown here</Tag>}
                  </Group>
                </Table.Td>
                <Table.Td>{replica.version}</Table.Td>
                <Table.Td>
                  <Ago seconds={replica.started_at} />
                </Table.Td>
                <Table.Td>
                  <Code>{replica.id}</Code>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollRegion>
      <SmallNote mt="sm">
        A stopped replica disappears immediately, a killed replica after 20 seconds. The figures above are from the
        replica marked “shown here”.
      </SmallNote>
    </Paper>
  );
}
