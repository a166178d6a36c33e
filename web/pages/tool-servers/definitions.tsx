// What a server says of its tools and prompts: what waits for a decision, in full, and all else by name.
import { Button, Collapse, Group, Stack, Text } from "@mantine/core";
import { CheckIcon, ChevronDownIcon, ChevronUpIcon } from "@primer/octicons-react";
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { ToolDefinition, ToolDefinitionList, ToolServer } from "../../api/types.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { count } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { DefinitionView } from "./definition-view.tsx";
import { definitionsPath } from "./tool-server-paths.ts";
import { DefinitionState, isWaiting } from "./tool-server-words.tsx";
import { useDecision } from "./use-decision.ts";

/** So many are shown in full at first, and by name. */
const [inFull, byName] = [5, 50];

export function Definitions({ server }: { server: ToolServer }) {
  const { data, error, refetch } = useRead<ToolDefinitionList>(definitionsPath(server.name));
  if (error) return <Failure error={error} retry={refetch} />;
  if (!data) return <Waiting heights={[28, 28, 28]} gap="xs" />;
  const waiting = data.data.filter(isWaiting);
  const decided = data.data.filter((one) => !isWaiting(one));
  return (
    <>
      {waiting.length > 0 && <WaitingOnes server={server} definitions={waiting} />}
      <DrawerPart title="Tools and prompts">
        {data.data.length === 0 ? (
          <Note>
            Nobody has asked it for them yet. They are listed here once it is tested, or a client or the page Tools
            asks.
          </Note>
        ) : (
          <Decided definitions={decided} />
        )}
      </DrawerPart>
    </>
  );
}

function WaitingOnes({ server, definitions }: { server: ToolServer; definitions: readonly ToolDefinition[] }) {
  const [most, setMost] = useState(inFull);
  const decide = useDecision(server.name);
  const shown = definitions.slice(0, most);
  const rest = definitions.length - shown.length;
  return (
    <DrawerPart title={`To approve: ${count(definitions.length)}`}>
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

function Decided({ definitions }: { definitions: readonly ToolDefinition[] }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? definitions : definitions.slice(0, byName);
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

function Folded({ definition }: { definition: ToolDefinition }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Button
          variant="subtle"
          size="compact-sm"
          maw="100%"
          onClick={() => setOpen(!isOpen)}
          aria-expanded={isOpen}
          rightSection={isOpen ? <ChevronUpIcon /> : <ChevronDownIcon />}
        >
          {definition.name}
        </Button>
        <DefinitionState state={definition.state} />
      </Group>
      <Collapse expanded={isOpen}>
        {isOpen && <div className="definition">{<DefinitionView definition={definition} />}</div>}
      </Collapse>
    </div>
  );
}

function Named({ definition: { kind, name, state } }: { definition: ToolDefinition }) {
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap" mb="xs" align="start">
      <div style={{ overflowWrap: "anywhere" }}>
        <Text fw={600} size="sm" component="h3">
          {name}
        </Text>
        {kind === "prompt" && <SmallNote>A prompt</SmallNote>}
      </div>
      <DefinitionState state={state} />
    </Group>
  );
}
