// What a server says of its tools and prompts: what waits for a decision, in full, and all else by name.
import { Button, Collapse, Group, Stack, Text } from "@mantine/core";
import { CheckIcon, ChevronDownIcon, ChevronUpIcon, SyncIcon } from "@primer/octicons-react";
import { useEffect, useRef, useState } from "react";
import { readOffer } from "../../api/tools.ts";
import type { ToolDefinition } from "../../api/types.ts";
import { useToldChange } from "../../parts/editing/told-change.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { count, counted } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { Told } from "../../parts/words/told.tsx";
import { DefinitionView } from "./definition-view.tsx";
import { toolServersPath } from "./tool-server-paths.ts";
import { DefinitionState, isWaiting, wordsFor } from "./tool-server-words.tsx";
import { useDecision } from "./use-decision.ts";

/** So many are shown in full at first, and by name. */
const [inFull, byName] = [5, 50];
const longestMs = 60_000;

export function ToApprove({ server, all }: { server: string; all: readonly ToolDefinition[] }) {
  const [most, setMost] = useState(inFull);
  const decide = useDecision(server);
  const waiting = all.filter(isWaiting);
  const shown = waiting.slice(0, most);
  const rest = waiting.length - shown.length;
  if (waiting.length === 0) return null;
  return (
    <DrawerPart title={`To approve: ${count(waiting.length)}`}>
      <Stack gap="md">
        <Note>
          A model reads what a server says as if you had written it. Until you approve it, nobody sees or calls it.
        </Note>
        <Stack component="ul" gap="sm" m={0} p={0} className="definitions" aria-label="To approve">
          {shown.map((definition) => (
            <li key={`${definition.kind} ${definition.name}`} className="definition">
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
          {rest > 0 && (
            <SmallButton onClick={() => setMost(most + inFull)}>Show more, {count(rest)} are left</SmallButton>
          )}
        </Group>
        {decide.error && <Failure error={decide.error} />}
      </Stack>
    </DrawerPart>
  );
}

/** All that waits for nothing, by name. */
export function Decided({ all }: { all: readonly ToolDefinition[] }) {
  const [isWhole, setWhole] = useState(false);
  const definitions = all.filter((one) => !isWaiting(one));
  const shown = isWhole ? definitions : definitions.slice(0, byName);
  if (all.length === 0) {
    return <Note>Nobody has asked it for them yet. They are listed here once a client does, or you do.</Note>;
  }
  if (definitions.length === 0) return <Note>None is decided yet.</Note>;
  return (
    <Stack gap="sm" align="start">
      <Stack component="ul" gap="xs" m={0} p={0} w="100%" className="definitions" aria-label="Tools and prompts">
        {shown.map((definition) => (
          <li key={`${definition.kind} ${definition.name}`}>
            <Folded definition={definition} />
          </li>
        ))}
      </Stack>
      {shown.length < definitions.length && (
        <SmallButton onClick={() => setWhole(true)}>Show all {count(definitions.length)}</SmallButton>
      )}
    </Stack>
  );
}

/** Nothing is on record of a test: what is asked for as clients do it is. */
export function AskForThem({ server, isFirst }: { server: string; isFirst: boolean }) {
  const path = `/mcp/${encodeURIComponent(server)}`;
  const ask = useToldChange(() => readOffer(AbortSignal.timeout(longestMs), path), {
    stale: [toolServersPath],
    said: ({ tools, prompts }) =>
      `${server} offers you ${counted(tools.length, "tool")} and ${counted(prompts.length, "prompt")}.`,
  });
  return (
    <Stack gap="xs" mt="sm" align="start">
      <SmallButton leftSection={<SyncIcon />} loading={ask.isPending} onClick={() => ask.mutate()}>
        {isFirst ? "Ask for them" : "Ask again"}
      </SmallButton>
      {ask.error && <Failure error={ask.error} />}
    </Stack>
  );
}

function Folded({ definition }: { definition: ToolDefinition }) {
  const [isOpen, setOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  // The button of the decision had the keyboard, and is another one now.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the state takes the button away
  useEffect(() => {
    if (isOpen && document.activeElement === document.body) opener.current?.focus({ preventScroll: true });
  }, [definition.state]);
  return (
    <div>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Button
          ref={opener}
          variant="subtle"
          size="compact-sm"
          maw="100%"
          onClick={() => setOpen(!isOpen)}
          aria-expanded={isOpen}
          rightSection={isOpen ? <ChevronUpIcon /> : <ChevronDownIcon />}
        >
          <bdi>
            <Told>{wordsFor(definition)}</Told>
          </bdi>
        </Button>
        <DefinitionState state={definition.state} />
      </Group>
      <Collapse expanded={isOpen}>
        {isOpen && (
          <div className="definition" style={{ marginTop: "0.25rem" }}>
            <DefinitionView definition={definition} />
          </div>
        )}
      </Collapse>
    </div>
  );
}

function Named({ definition }: { definition: ToolDefinition }) {
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap" mb="xs" align="start">
      <Text fw={600} size="sm" component="h3" style={{ overflowWrap: "anywhere" }}>
        <bdi>
          <Told>{wordsFor(definition)}</Told>
        </bdi>
      </Text>
      <DefinitionState state={definition.state} />
    </Group>
  );
}
