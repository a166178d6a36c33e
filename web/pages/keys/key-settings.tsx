// All settings of a key, read-only.
import { Anchor, Code, DataList, Group, Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { ApiKey, MemberList } from "../../api/types.ts";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { amountFigure, keyAmounts } from "../../parts/words/amounts.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { ago, at, count, span } from "../../parts/words/figures.ts";
import { KeyStatus, shownKey } from "../../parts/words/key-status.tsx";
import { scopes as allScopes } from "../../parts/words/scopes.ts";

export function KeySettings({ record }: { record: ApiKey }) {
  const { id, scopes, rate_limit: limit, rate_limit_window: windowSeconds } = record;
  return (
    <Paper withBorder p="lg">
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
        <DataList labelWidth="8rem" gap="sm">
          <Line label="State">
            <KeyStatus record={record} />
          </Line>
          <Line label="Key">
            <Code>{shownKey(record)}</Code>
          </Line>
          <Line label="Id">
            <Group gap={4} wrap="nowrap">
              <Code style={{ overflowWrap: "anywhere" }}>{id}</Code>
              <CopyAction value={id} label="Copy the id" />
            </Group>
          </Line>
          <Line label="Environment">{environmentNames[record.environment]}</Line>
          <Line label="Created">
            {at(record.created_at)} <Maker id={record.created_by} />
          </Line>
          <Line label="Last used">
            <Ago seconds={record.last_used_at} />
          </Line>
          <Line label={hasEnded(record) ? "Ended" : "Works until"}>{endText(record)}</Line>
          {record.tags.length > 0 && (
            <Line label="Tags">
              <Codes of={record.tags} none="none" />
            </Line>
          )}
          {record.note !== null && (
            <Line label="Note">
              <Text inherit style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
                {record.note}
              </Text>
            </Line>
          )}
        </DataList>
        <DataList labelWidth="8rem" gap="sm">
          <Line label="Permissions">
            <Stack gap={4}>
              {allScopes
                .filter(({ scope }) => scopes.includes(scope))
                .map(({ scope, title }) => (
                  <span key={scope}>
                    {title} <Code>{scope}</Code>
                  </span>
                ))}
            </Stack>
          </Line>
          <Line label="Models">
            {record.models === null ? "all models of the environment" : <Codes of={record.models} none="none" />}
          </Line>
          {record.tools !== null && (
            <Line label="Tools">
              <Codes of={record.tools} none="none" />
            </Line>
          )}
          {record.never_leaves && <Line label="Local servers only">yes</Line>}
          {record.priority !== null && <Line label="Priority">at most {record.priority}</Line>}
          {record.response_cache !== null && (
            <Line label="Response cache">{record.response_cache === "on" ? "always" : "never"}</Line>
          )}
          <Line label="Allowed from">
            <Codes of={record.allowed_ips} none="any address" />
          </Line>
          <Line label="Own rate limit">
            {limit === null ? "none" : `${count(limit)} requests in ${span(windowSeconds ?? 60)}`}
          </Line>
          {keyAmounts.map((amount) => (
            <Line key={amount.wire} label={amount.label}>
              {amountFigure(amount, record[amount.wire], "no own limit")}
            </Line>
          ))}
        </DataList>
      </SimpleGrid>
    </Paper>
  );
}

function Codes({ of, none }: { of: readonly string[]; none: string }) {
  if (of.length === 0) return none;
  return (
    <Group gap={4}>
      {of.map((one) => (
        <Code key={one} style={{ overflowWrap: "anywhere" }}>
          {one}
        </Code>
      ))}
    </Group>
  );
}

function Line({ label, children }: { label: string; children: ReactNode }) {
  return (
    <DataList.Item>
      <DataList.ItemLabel>{label}</DataList.ItemLabel>
      <DataList.ItemValue>{children}</DataList.ItemValue>
    </DataList.Item>
  );
}

function hasEnded({ status }: ApiKey): boolean {
  return status === "expired" || status === "revoked";
}

function endText(record: ApiKey): string {
  const { expires_at: expires, revoked_at: revoked } = record;
  if (revoked !== null) return hasEnded(record) ? at(revoked) : `${at(revoked)} (rotated)`;
  if (expires === null) return hasEnded(record) ? "with the key that created it" : "it is revoked";
  return `${at(expires)} (${ago(expires)})`;
}

/** Shows who created a key. Only managers can list the names of other people; members see the person's id. */
function Maker({ id }: { id: string | null }) {
  const { session, isManager } = useSession();
  const isOther = id?.startsWith("usr_") === true && id !== session.person.id;
  const members = useRead<MemberList>("/v1/members", { limit: 100 }, { enabled: isManager && isOther });
  if (id === null) return "by the server";
  if (id === session.person.id) return "by you";
  if (id.startsWith("key_")) {
    return (
      <>
        with{" "}
        <Anchor component={Link} href={`/settings/api-keys/${id}`} underline="always" inherit>
          another key
        </Anchor>
      </>
    );
  }
  const member = members.data?.data.find(({ person_id }) => person_id === id);
  return member ? (
    `by ${member.name}`
  ) : (
    <Text component="span" inherit>
      by <Code style={{ overflowWrap: "anywhere" }}>{id}</Code>
    </Text>
  );
}
