// Compares a model with its shadow and its split models, over the last week.
import { Stack, Table, Title } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { ComparedModel, Comparison, ComparisonList } from "../../api/types.ts";
import { ScrollRegion } from "../../parts/page/scroll-region.tsx";
import { count, duration, money, perSecond } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";

/** The API path of comparisons, which a change of a model makes stale: the model may be compared with others then. */
export const comparisonsPath = "/v1/admin/comparisons";

const figures: readonly (readonly [name: string, of: (side: ComparedModel) => string])[] = [
  ["Requests", ({ requests }) => count(requests)],
  ["Errors", ({ errors }) => count(errors)],
  ["First token, median", ({ first_token_ms: { p50 } }) => timeText(p50)],
  ["First token, 95 %", ({ first_token_ms: { p95 } }) => timeText(p95)],
  ["Whole answer, median", ({ duration_ms: { p50 } }) => timeText(p50)],
  ["Whole answer, 95 %", ({ duration_ms: { p95 } }) => timeText(p95)],
  ["Tokens per second", ({ tokens_per_second: speed }) => (speed === null ? "–" : perSecond(speed))],
  ["Prompt tokens", ({ prompt_tokens: tokens }) => count(tokens)],
  ["Completion tokens", ({ completion_tokens: tokens }) => count(tokens)],
  ["Completion tokens per answer", ({ answer_tokens: tokens }) => (tokens === null ? "–" : count(tokens))],
  ["Cost", ({ cost }) => (cost === null ? "–" : money(cost))],
];

/** Renders nothing if the model shares its requests with no other. */
export function Comparisons({ model }: { model: string }) {
  const { data } = useRead<ComparisonList>(comparisonsPath, { model });
  return data?.data.map((one) => <OneComparison key={`${one.kind} ${one.other.model}`} comparison={one} />);
}

function OneComparison({ comparison }: { comparison: Comparison }) {
  const { kind, percent, own, other, partial } = comparison;
  const isEmpty = own.requests + other.requests === 0;
  return (
    <Stack gap="xs">
      <Title order={3} size="sm">
        {kind === "shadow" ? "Comparison with its shadow" : "Comparison with a split model"}
      </Title>
      <SmallNote>
        {kind === "shadow"
          ? `${percent} % of the requests are also sent to ${other.model}. ${isEmpty ? "No request was answered by both models" : "Requests answered by both models"} in the last week${isEmpty ? "." : ":"}`
          : `${other.model} answers ${percent} % of the requests. ${isEmpty ? "Neither model answered a request" : "Requests answered by each model"} in the last week${isEmpty ? "." : ":"}`}
      </SmallNote>
      {!isEmpty && <Figures sides={[own, other]} />}
      {partial && <SmallNote>These figures cover only the newest requests, because there are very many.</SmallNote>}
    </Stack>
  );
}

function Figures({ sides: [own, other] }: { sides: readonly [ComparedModel, ComparedModel] }) {
  const sides = [own, other];
  return (
    <ScrollRegion label={`${own.model} and ${other.model}`}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Figure</Table.Th>
            {sides.map(({ model }) => (
              <Table.Th key={model} ta="right" style={{ overflowWrap: "anywhere" }}>
                {model}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {figures.map(([name, of]) => (
            <Table.Tr key={name}>
              <Table.Td>{name}</Table.Td>
              {sides.map((side) => (
                <Table.Td key={side.model} ta="right" className="numeric">
                  {of(side)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollRegion>
  );
}

function timeText(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}
