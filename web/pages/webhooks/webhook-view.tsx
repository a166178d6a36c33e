// One webhook: its events, deliveries and actions.
import { Alert, Group, Stack } from "@mantine/core";
import { AlertIcon, PaperAirplaneIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import type { UpdateWebhookRequest, Webhook, WebhookTest } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { Removal } from "../../parts/editing/removal.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { DrawerPart, RecordTitle } from "../../parts/page/section.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { Facts } from "../../parts/words/facts.tsx";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { Deliveries } from "./deliveries.tsx";
import { formatNames, type WebhookKind, webhookPath } from "./webhook-kind.ts";

interface ViewProps {
  kind: WebhookKind;
  webhook: Webhook;
  close(): void;
}

export function WebhookView({ kind, webhook, close }: ViewProps) {
  const { id, url, format, description, events, enabled, disabled_reason: reason, created_at: made } = webhook;
  const path = webhookPath(kind, id);
  const change = useNotifiedChange((body: UpdateWebhookRequest) => call<Webhook>("PATCH", path, { body }), {
    stale: [kind.path],
    said: (changed) => (changed.enabled ? "The webhook is enabled." : "The webhook is disabled."),
  });
  const test = useNotifiedChange(() => call<WebhookTest>("POST", `${path}/test`), {
    stale: [`${path}/deliveries`],
    said: () => "A test was sent. The result appears below.",
  });
  return (
    <Stack gap="lg">
      <div>
        <RecordTitle>{url}</RecordTitle>
        {description !== "" && <Note>{description}</Note>}
      </div>
      {reason === "gone" && (
        <Alert icon={<AlertIcon />} color="red" title="The receiver was removed">
          The receiver answered with status 410. Nothing is sent until you enable the webhook again.
        </Alert>
      )}
      <Facts
        facts={[
          ["Format", formatNames[format]],
          ["Events", events.length === 0 ? "All" : events.join(", ")],
          ["Status", enabled ? "Enabled" : "Disabled"],
          ["Added", <Ago key="added" seconds={made} />],
        ]}
      />
      <Group gap="xs">
        <PlainButton
          leftSection={<PaperAirplaneIcon />}
          disabled={!enabled}
          loading={test.isPending}
          onClick={() => test.mutate()}
        >
          Send a test
        </PlainButton>
        <PlainButton loading={change.isPending} onClick={() => change.mutate({ enabled: !enabled })}>
          {enabled ? "Disable" : "Enable"}
        </PlainButton>
        <Removal
          name="the webhook"
          path={path}
          stale={[kind.path]}
          action="Remove webhook"
          done="The webhook was removed."
          close={close}
        >
          Nothing more is sent to {url}. Waiting events and the delivery history are deleted.
        </Removal>
      </Group>
      {test.error && <Failure error={test.error} />}
      {change.error && <Failure error={change.error} />}
      <DrawerPart title="Deliveries">
        <Deliveries path={`${path}/deliveries`} />
      </DrawerPart>
      <Group gap={2} wrap="nowrap">
        <SmallNote style={{ overflowWrap: "anywhere" }}>{id}</SmallNote>
        <CopyAction value={id} label="Copy the id of the webhook" />
      </Group>
    </Stack>
  );
}
