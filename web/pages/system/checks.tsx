// The readiness checks of the server, each with its meaning.
import { Group, Paper, Stack, Text, Title } from "@mantine/core";
import type { System } from "../../api/types.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

type CheckState = System["checks"][string];

const states: Record<CheckState, readonly [StateKind, string]> = {
  ok: ["good", "Ok"],
  degraded: ["warning", "Needs attention"],
  starting: ["waiting", "Starting"],
  failed: ["bad", "Failed"],
  draining: ["warning", "Stopping"],
};

const meanings: Record<string, string> = {
  server: "Accepts requests. While stopping, the server completes running requests.",
  database: "The database answers. Changes and new keys need it.",
  clock: "The clock differs from the database's by at most 15 s. Otherwise tokens of other replicas are refused.",
  spool: "The ledger can be written. Without it, usage cannot be recorded.",
  secret: "The secret matches the database. Otherwise keys are not found.",
  connections: "The number of open requests is below its limit.",
  memory: "Enough memory for requests and answers.",
  external_secrets: "Secrets in files and in Vault are current. Otherwise their last values stay in use.",
  redis: "Redis answers. It counts limits for all replicas together.",
  replicas: "Several replicas count limits in one place.",
  models: "All model servers were asked for their models once.",
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
        A monitor can read these checks at /readyz without signing in. The address answers 503 if the server cannot
        accept requests. Without Redis, and for five minutes without the database, the server still accepts requests.
      </SmallNote>
    </Paper>
  );
}
