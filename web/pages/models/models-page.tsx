// The page Models: the available models, their deployments, load and speed; for operators also who declares them.
import { Alert, Button, Paper, Stack } from "@mantine/core";
import { InfoIcon, PlusIcon } from "@primer/octicons-react";
import { useCallback, useDeferredValue } from "react";
import { useSearchParams } from "wouter";
import { useModels } from "../../api/models.ts";
import { useSession } from "../../api/session.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { NoModels } from "../../parts/page/no-models.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { useStaged } from "../../parts/table/staged.ts";
import { count, counted } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { type ShownModel, shownModels, useManagedModels, useSpendTiers } from "./managed-models.ts";
import { ModelDrawer } from "./model-drawer.tsx";
import { ModelFilters, useModelFilters } from "./model-filters.tsx";
import { ModelProcesses } from "./model-processes.tsx";
import { ModelRow } from "./model-row.tsx";

const everyMs = 5_000;
/** Number of rows that are added at a time. */
const stage = 10;

export function ModelsPage() {
  const { isOperator } = useSession();
  const { models, error, refetch } = useModels(everyMs);
  const managed = useManagedModels();
  const spendTiers = useSpendTiers();
  const [search, setSearch] = useSearchParams();
  const put = useCallback(
    (name: "model" | "new" | null, value: string) =>
      setSearch((before) => {
        const after = new URLSearchParams(before);
        after.delete("model");
        after.delete("new");
        if (name) after.set(name, value);
        return after;
      }),
    [setSearch],
  );
  const show = useCallback((id: string) => put("model", id), [put]);
  const known = managed.data?.data ?? [];
  // The list waits until the notices above are known, because a later notice would move the rows.
  const isKnown = spendTiers && (!isOperator || managed.data !== undefined || managed.error !== null);
  const shown = models && isKnown ? shownModels(models, known) : undefined;
  const drawn = useStaged(shown?.length, stage);
  const failed = error ?? managed.error;
  const wanted = search.get("model");
  const isMissing = wanted !== null && managed.data !== undefined && !known.some(({ id }) => id === wanted);
  return (
    <Page
      title="Models"
      about="Models that you may use, their servers, and the current load. Refreshed every few seconds."
      actions={
        isOperator && (
          <PlainButton leftSection={<PlusIcon />} onClick={() => put("new", "")}>
            Add model
          </PlainButton>
        )
      }
    >
      {failed && <Failure error={failed} retry={() => void Promise.all([refetch(), managed.refetch()])} />}
      {isMissing && (
        <Alert icon={<InfoIcon />} color="yellow" title={`Model ${wanted} not found`} role="status">
          The model may have been removed or renamed. The list shows all models.
        </Alert>
      )}
      {shown && <MissingPrices models={known} tiers={spendTiers ?? []} />}
      {shown ? (
        shown.length > 0 ? (
          <Found models={shown} drawn={drawn} show={show} />
        ) : (
          <NoModels />
        )
      ) : (
        !failed && <Waiting heights={[84, 84, 84, 84]} gap="xs" />
      )}
      {isOperator && (shown ? drawn === Infinity : failed) && <ModelProcesses />}
      {isOperator && (
        <ModelDrawer
          model={search.has("new") ? "new" : known.find(({ id }) => id === wanted)}
          ids={known.map(({ id }) => id)}
          close={() => put(null, "")}
          show={show}
        />
      )}
    </Page>
  );
}

interface FoundProps {
  models: readonly ShownModel[];
  /** Number of rows that are rendered so far. */
  drawn: number;
  show(id: string): void;
}

function Found({ models, drawn, show }: FoundProps) {
  const filters = useModelFilters();
  const shown = models.filter(filters.matches);
  // Rows are rendered in slices to keep the browser responsive, because clearing a filter adds many at once.
  const listed = useDeferredValue(shown);
  return (
    <Stack gap="sm">
      <ModelFilters {...filters} />
      <Note aria-live="polite">
        {shown.length === models.length
          ? counted(models.length, "model")
          : `${count(shown.length)} of ${count(models.length)} models`}
        {troubleIn(shown)}
      </Note>
      {listed.length > 0 ? (
        <Paper withBorder component="ul" className="model-list">
          {listed.slice(0, drawn).map(({ status, managed, isHere }) => (
            <ModelRow key={status.id} model={status} managed={managed} isHere={isHere} show={show} />
          ))}
        </Paper>
      ) : (
        <Empty title="No matching model" action={<Button onClick={filters.clear}>Show all models</Button>}>
          No model matches the search, the ability and the health.
        </Empty>
      )}
    </Stack>
  );
}

interface MissingPricesProps {
  models: readonly { id: string; price: unknown }[];
  /** The tiers that limit spend. */
  tiers: readonly string[];
}

/** Warns that quotas in USD have no effect on models without a price. */
function MissingPrices({ models, tiers }: MissingPricesProps) {
  const free = models.filter(({ price }) => price === null);
  if (tiers.length === 0 || free.length === 0) return null;
  const names = free.slice(0, 3).map(({ id }) => id);
  const more = free.length > names.length ? ` and ${count(free.length - names.length)} more` : "";
  return (
    <Alert icon={<InfoIcon />} color="yellow" title="Usage of these models is not counted as spend">
      {names.join(", ")}
      {more} {free.length === 1 ? "has" : "have"} no price. The monthly spend limit of the{" "}
      {tiers.length === 1 ? "tier" : "tiers"} {tiers.join(", ")} does not apply to{" "}
      {free.length === 1 ? "this model" : "these models"}. Set a price, or 0 for a free model.
    </Alert>
  );
}

function troubleIn(models: readonly ShownModel[]): string {
  const troubled = models.filter(({ health }) => health !== "ok").length;
  if (troubled > 0) return `, ${count(troubled)} with problems`;
  return models.length > 0 ? ", all working" : "";
}
