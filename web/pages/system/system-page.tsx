// The page System: the current health of the server.
import { Paper, SimpleGrid, Skeleton, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { useRead } from "../../api/queries.ts";
import type { System } from "../../api/types.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Facts } from "../../parts/words/facts.tsx";
import { atSecond, bytes, count, counted, duration, span } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { Checks } from "./checks.tsx";
import { Replicas } from "./replicas.tsx";
import { Verdict } from "./verdict.tsx";

export const SystemPage = operatorsOnly("System", () => (
  <Page title="System" about="The state of this server, refreshed every 5 seconds.">
    <Health />
  </Page>
));

function Health() {
  const { data: system, error, refetch, dataUpdatedAt } = useRead<System>("/v1/admin/system", {}, { everyMs: 5_000 });
  if (!system) return error ? <Failure error={error} retry={refetch} /> : <Skeleton height={320} aria-busy="true" />;
  return (
    <Stack gap="lg">
      {error && <Failure error={error} retry={refetch} title="Data may be out of date" />}
      <Verdict system={system} />
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
        <Part title="Requests">
          <Facts
            facts={[
              ["Open", <Figure key="open">{count(system.requests.open)}</Figure>],
              ["Waiting for a model server", <Figure key="waiting">{count(system.requests.waiting)}</Figure>],
            ]}
          />
        </Part>
        <Part title="Event-loop delay, last minute" about="Each request is delayed by this time.">
          <Facts
            facts={[
              ["Mean", <Figure key="mean">{duration(system.event_loop.mean_delay_ms)}</Figure>],
              ["Max", <Figure key="max">{duration(system.event_loop.max_delay_ms)}</Figure>],
            ]}
          />
        </Part>
        <Part title="Memory">
          <Facts facts={[["Gateway", <Figure key="rss">{bytes(system.memory.rss_bytes)}</Figure>]]} />
        </Part>
        <Part title="Server">
          <Facts
            facts={[
              ["Version", system.version],
              ["Mode", system.mode],
              ["Limits counted in", countedIn(system)],
              ["Uptime", span(Math.max(0, dataUpdatedAt / 1000 - system.started_at))],
              ["Since", atSecond(system.started_at)],
            ]}
          />
        </Part>
        <Part title="Database">
          <Facts
            facts={[
              ["Kind", system.database.kind === "postgres" ? "PostgreSQL" : "SQLite"],
              ["Size", system.database.size_bytes === null ? "unknown" : bytes(system.database.size_bytes)],
              ...(system.database.wal_bytes === null
                ? []
                : [["Write-ahead log", bytes(system.database.wal_bytes)] as const]),
              ["Usage records to write", `${counted(system.spool.pending, "request")}, ${bytes(system.spool.bytes)}`],
            ]}
          />
        </Part>
        <Part title="Keys in memory">
          <Facts
            facts={[
              ["Cached", count(system.credentials.cached)],
              ["Last confirmed", `${duration(system.credentials.unconfirmed_ms)} ago`],
            ]}
          />
        </Part>
      </SimpleGrid>
      {system.database.kind === "postgres" && <Replicas system={system} />}
      <Checks checks={system.checks} />
    </Stack>
  );
}

function countedIn({ redis }: System): string {
  if (!redis) return "memory";
  return redis.state === "ok" ? "Redis, for all replicas" : "each replica separately";
}

function Part({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="sm">
        {title}
      </Title>
      {children}
      {about && <SmallNote mt="sm">{about}</SmallNote>}
    </Paper>
  );
}

function Figure({ children }: { children: string }) {
  return (
    <Text span size="xl" fw={600} className="numeric">
      {children}
    </Text>
  );
}
