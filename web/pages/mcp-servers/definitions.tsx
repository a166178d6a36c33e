// The tools and prompts of a server: those pending approval in full, and all of them by name.
import { Button, Group, Stack, Text } from "@mantine/core";
import { ArrowLeftIcon, CheckIcon, SearchIcon, SyncIcon } from "@primer/octicons-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { type Listing, useRead } from "../../api/queries.ts";
import { readOffer } from "../../api/tools.ts";
import type { McpServer, ToolDefinition, ToolDefinitionList } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { SearchField } from "../../parts/filters/search-field.tsx";
import { PlainButton, SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { NameButton } from "../../parts/page/links.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { count, counted } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { VisibleText } from "../../parts/words/visible-text.tsx";
import { DefinitionView } from "./definition-view.tsx";
import { definitionsPath, mcpServersPath } from "./mcp-server-paths.ts";
import { DefinitionState, wordsFor } from "./mcp-server-words.tsx";
import { useDecision } from "./use-decision.ts";

/**
 * Numbers of pending definitions that are shown in full, at first and at most. The next definitions follow once the
 * shown ones are decided.
 */
const [inFull, maxInFull] = [5, 25];
/** A list with more entries than this has a search field; in a shorter list an entry is found at a glance. */
const searchedFrom = 10;
const maxMs = 60_000;
const none: readonly ToolDefinition[] = [];

/** Loads the first pending definitions. */
export function useWaiting({ name, waiting: amount }: McpServer) {
  const [most, setMost] = useState(inFull);
  const { data } = useRead<ToolDefinitionList>(
    definitionsPath(name),
    { waiting: true, limit: most },
    { enabled: amount > 0, keep: true },
  );
  return {
    amount,
    shown: (amount > 0 && data?.data) || none,
    more: most < maxInFull ? () => setMost(most + inFull) : undefined,
  };
}

export function ToApprove({ server, waiting }: { server: string; waiting: ReturnType<typeof useWaiting> }) {
  const decide = useDecision(server);
  const { amount, shown, more } = waiting;
  const rest = amount - shown.length;
  if (shown.length === 0) return null;
  return (
    <DrawerPart title={`To approve: ${count(amount)}`}>
      <Stack gap="md">
        <Note>
          Models trust tool descriptions as if you wrote them. Clients cannot see or call a tool until you approve it.
        </Note>
        <Stack component="ul" gap="sm" m={0} p={0} className="definitions" aria-label="To approve">
          {shown.map((definition) => (
            <li key={definition.id} className="definition">
              <Named definition={definition} />
              <DefinitionView definition={definition} />
            </li>
          ))}
        </Stack>
        <Group gap="xs">
          {shown.length > 1 && (
            <Button
              size="xs"
              variant="light"
              leftSection={<CheckIcon />}
              loading={decide.isPending}
              onClick={() => decide.mutate({ definitions: shown, decision: "approved" })}
            >
              Approve these {count(shown.length)}
            </Button>
          )}
          {rest > 0 && more && <SmallButton onClick={more}>Show more ({count(rest)} left)</SmallButton>}
        </Group>
        {rest > 0 && !more && (
          <Note>{count(rest)} more appear after you decide on these. You can find all of them by name below.</Note>
        )}
        {decide.error && <Failure error={decide.error} />}
      </Stack>
    </DrawerPart>
  );
}

interface AllDefinitionsProps {
  listing: Listing<ToolDefinition>;
  search: string;
  find(search: string): void;
  choose(definition: ToolDefinition): void;
}

/** Lists all recorded definitions by name. */
export function AllDefinitions({ listing, search, find, choose }: AllDefinitionsProps) {
  const columns = useMemo(() => columnsOf(choose), [choose]);
  const isLong = search !== "" || listing.items.length > searchedFrom;
  return (
    <Stack gap="sm">
      {isLong && (
        <SearchField
          aria-label="Search tools and prompts"
          placeholder="Name or description"
          leftSection={<SearchIcon />}
          size="xs"
          value={search}
          maxLength={100}
          change={find}
        />
      )}
      <LongTable
        label="Tools and prompts"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        choose={choose}
        height="min(60vh, 30rem)"
        fixed
        empty={
          <Note>
            {search === ""
              ? "Not loaded yet. Load the tools, or wait until a client lists them."
              : "No tool or prompt matches the search."}
          </Note>
        }
      />
    </Stack>
  );
}

function columnsOf(choose: (definition: ToolDefinition) => void): Column<ToolDefinition>[] {
  return [
    {
      name: "name",
      head: "Name",
      cell: (definition) => (
        <NameButton show={() => choose(definition)}>
          <bdi>
            <VisibleText>{wordsFor(definition)}</VisibleText>
          </bdi>
        </NameButton>
      ),
    },
    { name: "state", head: "State", width: "7rem", cell: ({ state }) => <DefinitionState state={state} /> },
  ];
}

/** Shows one definition instead of the view of its server. */
export function OneDefinition({ definition, back }: { definition: ToolDefinition; back(): void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The button in the list, or the button of the decision, had the focus and is gone.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the state removes the focused button
  useEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, [definition.state]);
  return (
    <Stack gap="md" align="stretch">
      <Group>
        <PlainButton size="xs" leftSection={<ArrowLeftIcon />} onClick={back}>
          Back to {definition.server}
        </PlainButton>
      </Group>
      <div>
        <Named definition={definition} heading={heading} />
        <DefinitionView definition={definition} />
      </div>
    </Stack>
  );
}

/** Lists the tools of an MCP server as a client would, which records them: a test alone records no definitions. */
export function AskForThem({ server, isFirst }: { server: string; isFirst: boolean }) {
  const path = `/mcp/${encodeURIComponent(server)}`;
  const ask = useNotifiedChange(() => readOffer(AbortSignal.timeout(maxMs), path), {
    stale: [mcpServersPath],
    said: ({ tools, prompts }) =>
      `Loaded ${counted(tools.length, "tool")} and ${counted(prompts.length, "prompt")} of ${server}.`,
  });
  return (
    <Stack gap="xs" mt="sm" align="start">
      <SmallButton leftSection={<SyncIcon />} loading={ask.isPending} onClick={() => ask.mutate()}>
        {isFirst ? "Load tools" : "Refresh"}
      </SmallButton>
      {ask.error && <Failure error={ask.error} />}
    </Stack>
  );
}

interface NamedProps {
  definition: ToolDefinition;
  heading?: React.Ref<HTMLHeadingElement>;
}

function Named({ definition, heading }: NamedProps) {
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap" mb="xs" align="start">
      <Text
        fw={600}
        size="sm"
        component="h3"
        tabIndex={-1}
        style={{ overflowWrap: "anywhere" }}
        {...(heading ? { ref: heading } : {})}
      >
        <bdi>
          <VisibleText>{wordsFor(definition)}</VisibleText>
        </bdi>
      </Text>
      <DefinitionState state={definition.state} />
    </Group>
  );
}
