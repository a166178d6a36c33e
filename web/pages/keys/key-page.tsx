// The page of one key: settings, usage and actions.
import { Button, Group, Skeleton, Stack } from "@mantine/core";
import { KeyIcon, PencilIcon, SyncIcon } from "@primer/octicons-react";
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { ApiKeyDetails } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { Suspending } from "../../parts/editing/suspending.tsx";
import { BackLink } from "../../parts/page/back-link.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Section } from "../../parts/page/section.tsx";
import { UsedQuotas } from "../../parts/quotas/used-quotas.tsx";
import { UsageHistory } from "../../parts/usage/usage-history.tsx";
import { EditKey } from "./edit-key.tsx";
import { KeyClients } from "./key-clients.tsx";
import { KeySettings } from "./key-settings.tsx";
import { RevokeKey } from "./revoke-key.tsx";
import { RotateKey } from "./rotate-key.tsx";
import { RotationSchedule } from "./rotation-schedule.tsx";

export function KeyPage({ id }: { id: string }) {
  const { data: record, error, refetch } = useRead<ApiKeyDetails>(`/v1/keys/${id}`, {}, { everyMs: 30_000 });
  const [opened, setOpened] = useState<"edit" | "rotate" | "revoke">();
  const close = () => setOpened(undefined);
  const back = <BackLink href="/settings/api-keys">All keys</BackLink>;
  if (!record) {
    return (
      <Page title="API key" about={back}>
        {error ? (
          <Failure error={error} retry={refetch} />
        ) : (
          <Skeleton height={320} role="status" aria-label="Loading the key" />
        )}
      </Page>
    );
  }
  const isActive = record.status === "active";
  const isSuspended = record.status === "suspended";
  return (
    <Page
      title={record.name}
      about={back}
      actions={
        (isActive || isSuspended) && (
          <Group gap="xs">
            {isActive && (
              <PlainButton leftSection={<PencilIcon />} onClick={() => setOpened("edit")}>
                Edit
              </PlainButton>
            )}
            {isActive && record.revoked_at === null && (
              <PlainButton leftSection={<SyncIcon />} onClick={() => setOpened("rotate")}>
                Rotate
              </PlainButton>
            )}
            <Suspending
              {...{ path: `/v1/keys/${id}`, what: "key", name: record.name, isSuspended }}
              stale={[`/v1/keys/${id}`, "/v1/keys"]}
            />
            <Button variant="light" color="red" leftSection={<KeyIcon />} onClick={() => setOpened("revoke")}>
              Revoke
            </Button>
          </Group>
        )
      }
    >
      <Stack gap="lg">
        <KeySettings record={record} />
        {record.quotas_used.length > 0 && (
          <Section
            title="Quotas"
            about="Shared by this key, its rotated copies and keys it created. Running requests are not counted yet."
          >
            <UsedQuotas quotas={record.quotas_used} />
          </Section>
        )}
        {isActive && (
          <RotationSchedule
            path={`/v1/keys/${id}/rotation`}
            rotate={() => setOpened("rotate")}
            about="The schedule passes to the keys that replace this key."
          />
        )}
        <UsageHistory path={`/v1/keys/${id}/usage`} of="this key" />
        {isActive && record.scopes.includes("chat:write") && <KeyClients record={record} />}
      </Stack>
      <FormDialog opened={opened === "edit"} close={close} title={`Edit “${record.name}”`}>
        <EditKey record={record} close={close} />
      </FormDialog>
      <RotateKey record={record} opened={opened === "rotate"} close={close} />
      <RevokeKey record={record} opened={opened === "revoke"} close={close} />
    </Page>
  );
}
