// The page Models: what is available and where it runs, how busy and how fast it is, a few seconds old at most.
import { Button, Paper, Skeleton, Stack, Text } from "@mantine/core";
import { healthOf, useModels } from "../../api/models.ts";
import type { ModelStatus } from "../../api/types.ts";
import { Empty } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { count } from "../../parts/figures.ts";
import { NoModels } from "../../parts/no-models.tsx";
import { Page } from "../../parts/page.tsx";
import { ModelFilters, useModelFilters } from "./model-filters.tsx";
import { ModelRow } from "./model-row.tsx";

const everyMs = 5_000;

export function ModelsPage() {
  const { models, error, refetch } = useModels(everyMs);
  return (
    <Page title="Models" about="What you may use, where it runs, and how it does there; refreshed every few seconds.">
      {error && <Failure error={error} retry={refetch} />}
      {models ? models.length > 0 ? <Found models={models} /> : <NoModels /> : !error && <Waiting />}
    </Page>
  );
}

function Found({ models }: { models: readonly ModelStatus[] }) {
  const filters = useModelFilters();
  const shown = models.filter(filters.matches);
  return (
    <Stack gap="sm">
      <ModelFilters {...filters} />
      <Text size="sm" c="dimmed" aria-live="polite">
        {shown.length === models.length
          ? `${count(models.length)} ${models.length === 1 ? "model" : "models"}`
          : `${count(shown.length)} of ${count(models.length)} models`}
        {troubleIn(shown)}
      </Text>
      {shown.length > 0 ? (
        <Paper withBorder component="ul" className="model-list">
          {shown.map((model) => (
            <ModelRow key={model.id} model={model} />
          ))}
        </Paper>
      ) : (
        <Empty title="No model matches" action={<Button onClick={filters.clear}>Show all models</Button>}>
          None has this name, can do this and is in this state.
        </Empty>
      )}
    </Stack>
  );
}

function troubleIn(models: readonly ModelStatus[]): string {
  const troubled = models.filter((model) => healthOf(model) !== "ok").length;
  if (troubled > 0) return `, ${count(troubled)} with trouble`;
  return models.length > 0 ? ", all working" : "";
}

function Waiting() {
  return (
    <Stack gap="xs" aria-busy="true">
      {[1, 2, 3, 4].map((line) => (
        <Skeleton key={line} height={84} />
      ))}
    </Stack>
  );
}
