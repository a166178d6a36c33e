// The checks that decide whether the server takes requests, each with what it means.
import { Group, Paper, Stack, Text, Title } from "@mantine/core";
import type { System } from "../../api/types.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

type CheckState = System["checks"][string];

const states: Record<CheckState, readonly [StateKind, string]> = {
  ok: ["good", "Ok"],
  degraded: ["warning", "Not as it should"],
  starting: ["waiting", "Starting"],
  failed: ["bad", "Failed"],
  draining: ["warning", "Stopping"],
};

const meanings: Record<string, string> = {
  server: "Takes requests; while it stops, it ends those that run.",
  database: "Answers, so that changes and keys that are new here are seen.",
  clock: "Agrees with the database's to within 15 s, so that tokens of other replicas are taken.",
  spool: "Can be written, so that requests are kept account of.",
  secret: "Is among those in use, so that keys are found.",
  connections: "Fewer are open than are taken at most.",
  memory: "There is room for requests and their answers.",
  redis: "Answers, so that limits are counted once for all replicas.",
  replicas: "Count limits in one place, if there are several.",
  models: "Every model server was asked for its models once.",
};

export function Checks({ checks }: Pick<System, "checks">) {
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="sm">
        Checks
      </Title>
      <Stack gap="sm">
        {Object.entries(checks).map(([name, state]) => (
          <Group key={name} gap="sm">
            <State kind={states[state][0]}>{states[state][1]}</State>
            <Text size="sm" fw={500}>
              {name}
            </Text>
            <Note>{meanings[name]}</Note>
          </Group>
        ))}
      </Stack>
      <SmallNote mt="sm">
        A monitor reads them without signing in at /readyz. It answers 503 while the server cannot take requests;
        without Redis, or for five minutes without the database, it can.
      </SmallNote>
    </Paper>
  );
}
