// Tries an embedding model: shows how similar it finds the given texts.
import { Button, Group, Paper, Stack, Table, Text, Textarea, Title } from "@mantine/core";
import { useState } from "react";
import { send } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { EmbeddingList } from "../../api/types.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { count, duration } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { RequestLink } from "./request-link.tsx";

const most = 20;
const examples = "The river drives the wheel.\nWater turns the mill.\nThe invoice is due in March.";

interface Result {
  texts: readonly string[];
  vectors: readonly (readonly number[])[];
  tokens: number;
  durationMs: number;
  requestId: string | null;
}

export function EmbeddingsTry({ model }: { model: string }) {
  const [text, setText] = useState(examples);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const texts = [...new Set(lines)];
  const change = useChange((given: readonly string[]) => embed(model, given));
  return (
    <Stack gap="md">
      <Paper withBorder p="md">
        <Stack gap="sm">
          <Text size="sm">
            {model} turns texts into vectors for search and comparison. It does not chat. Enter some texts to see how
            similar they are.
          </Text>
          <Textarea
            label="Texts"
            description={`One text per line, at most ${most}.`}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            error={texts.length > most ? `${texts.length} texts are too many. Remove ${texts.length - most}.` : null}
            autosize
            minRows={4}
            maxRows={20}
          />
          <Group justify="end">
            <Button
              onClick={() => change.mutate(texts)}
              loading={change.isPending}
              disabled={texts.length === 0 || texts.length > most}
            >
              Compare
            </Button>
          </Group>
          {change.error && <Failure error={change.error} retry={() => change.mutate(texts)} />}
        </Stack>
      </Paper>
      <div aria-live="polite">{change.data && <ResultView result={change.data} />}</div>
    </Stack>
  );
}

function ResultView({ result: { texts, vectors, tokens, durationMs, requestId } }: { result: Result }) {
  const [first, ...others] = texts.map((text, index) => ({ text, vector: vectors[index] ?? [] }));
  if (!first) return null;
  const rows = others
    .map(({ text, vector }) => ({ text, likeness: cosine(first.vector, vector) }))
    .toSorted((a, b) => b.likeness - a.likeness);
  return (
    <Paper withBorder p="md">
      <Stack gap="sm">
        <Title order={2} size="md">
          Similarity to “{first.text}”
        </Title>
        {rows.length > 0 ? (
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Text</Table.Th>
                <Table.Th ta="right">Cosine</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map(({ text, likeness }) => (
                <Table.Tr key={text}>
                  <Table.Td>{text}</Table.Td>
                  <Table.Td ta="right" className="numeric">
                    {likeness.toFixed(3)}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        ) : (
          <Note>Add a second line to compare it with the first line.</Note>
        )}
        <Group gap="4px 14px" fz="xs" c="dimmed" className="numeric">
          <span>{count(first.vector.length)} dimensions</span>
          <span>{count(tokens)} tokens in</span>
          <span>{duration(durationMs)} in total</span>
          {requestId !== null && <RequestLink id={requestId} />}
        </Group>
      </Stack>
    </Paper>
  );
}

async function embed(model: string, input: readonly string[]): Promise<Result> {
  const startedMs = performance.now();
  const response = await send("POST", "/v1/embeddings", { body: { model, input, encoding_format: "float" } });
  const { data, usage } = (await response.json()) as EmbeddingList;
  const vectors: number[][] = [];
  for (const { index, embedding } of data) vectors[index] = Array.isArray(embedding) ? embedding : [];
  return {
    ...{ texts: input, vectors, tokens: usage.prompt_tokens },
    durationMs: performance.now() - startedMs,
    requestId: response.headers.get("x-request-id"),
  };
}

/** Returns the cosine similarity: 1 means the same direction; 0 means nothing in common, or a zero vector. */
function cosine(a: readonly number[], b: readonly number[]): number {
  let [dot, ofA, ofB] = [0, 0, 0];
  for (const [index, x] of a.entries()) {
    const y = b[index] ?? 0;
    dot += x * y;
    ofA += x * x;
    ofB += y * y;
  }
  return ofA === 0 || ofB === 0 ? 0 : dot / Math.sqrt(ofA * ofB);
}
