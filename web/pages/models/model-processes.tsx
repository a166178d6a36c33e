// The processes of this server that run models, for operators: the state, memory use and output of each.
import { Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import type { ModelProcess, ModelProcessList } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { bytes, counted } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { State } from "../../parts/words/state.tsx";
import { staleWithModels } from "./managed-models.ts";
import { ProcessOutput } from "./process-output.tsx";
import { processKinds, processWords } from "./process-words.ts";

const path = "/v1/admin/model-processes";
const everyMs = 2_000;

interface Change {
  name: string;
  body: { loaded?: boolean; pinned?: boolean };
  said: string;
}

export function ModelProcesses() {
  const read = useRead<ModelProcessList>(path, {}, { everyMs });
  const { mutate } = useNotifiedChange(
    ({ name, body }: Change) => call("PATCH", `${path}/${encodeURIComponent(name)}`, { body }),
    { stale: [path, ...staleWithModels], said: (_answer, { said }) => said },
  );
  if (read.error && !read.data) {
    return (
      <Section title="Model processes">
        <Failure error={read.error} retry={read.refetch} />
      </Section>
    );
  }
  if (!read.data || read.data.data.length === 0) return null;
  const shares = read.data.memory.map(({ pool, used, total }) => `${poolName(pool)} ${bytes(used)} of ${bytes(total)}`);
  return (
    <Section
      title="Model processes"
      about={`Commands from headrace.yaml that start when a request needs them. Reserved memory: ${shares.join(", ")}.`}
    >
      <Stack component="ul" gap="sm" className="model-places">
        {read.data.data.map((process) => (
          <Process key={process.name} process={process} change={mutate} />
        ))}
      </Stack>
    </Section>
  );
}

function Process({ process, change }: { process: ModelProcess; change(change: Change): void }) {
  const [showsOutput, setShowsOutput] = useState(false);
  const { name, state, pinned } = process;
  const isOff = state === "off" || state === "failed" || state === "asleep";
  const load = isOff
    ? { word: "Load", body: { loaded: true }, said: `${name} is loading.` }
    : { word: "Stop", body: { loaded: false }, said: `${name} will stop after its running requests.` };
  const pin = pinned
    ? { word: "Unpin", body: { pinned: false }, said: `${name} may now be stopped to free memory for other models.` }
    : { word: "Pin", body: { pinned: true }, said: `${name} stays loaded until the server stops.` };
  return (
    <li>
      <Group justify="space-between" gap="xs">
        <div style={{ overflowWrap: "anywhere", minWidth: 0 }}>
          <Group gap={6}>
            <Text size="sm" fw={500}>
              {name}
            </Text>
            <State kind={processKinds[state]}>{processWords[state]}</State>
          </Group>
          <SmallNote className="numeric">{factsOf(process)}</SmallNote>
          {process.failure !== null && <SmallNote style={{ whiteSpace: "normal" }}>{process.failure}</SmallNote>}
        </div>
        <Group gap="xs">
          {[load, pin].map(({ word, body, said }) => (
            <SmallButton key={word} aria-label={`${word} ${name}`} onClick={() => change({ name, body, said })}>
              {word}
            </SmallButton>
          ))}
          <SmallButton
            aria-label={`Output of ${name}`}
            aria-expanded={showsOutput}
            onClick={() => setShowsOutput(!showsOutput)}
          >
            Output
          </SmallButton>
        </Group>
      </Group>
      {showsOutput && <ProcessOutput name={name} path={`${path}/${encodeURIComponent(name)}/output`} />}
    </li>
  );
}

function factsOf(process: ModelProcess): string {
  const { memory, running, waiting, waiting_by: accounts, behind, pinned, is_next: isNext } = process;
  const amounts = Object.entries(memory).map(([pool, amount]) => `${poolName(pool)} ${bytes(amount)}`);
  const whose = accounts.length > 1 ? ` of ${counted(accounts.length, "account")}` : "";
  return [
    amounts.join(", "),
    `${running} running`,
    `${waiting} waiting${whose}`,
    ...(behind.length > 0 ? [`waits for ${behind.join(", ")}`] : []),
    ...(pinned ? ["pinned"] : []),
    ...(isNext ? ["next to be unloaded"] : []),
  ].join(" · ");
}

/** Formats `ram` and `gpu0` for display. */
function poolName(pool: string): string {
  return pool === "ram" ? "RAM" : pool.replace(/^gpu/, "GPU ");
}
