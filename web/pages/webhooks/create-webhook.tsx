// The dialog that creates a webhook and then shows its secret once.
import { Button, Group, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { type Change, useChange } from "../../api/queries.ts";
import type { CreateWebhookRequest, WebhookWithSecret } from "../../api/types.ts";
import { Choice } from "../../parts/editing/choice.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useFirstButton } from "../../parts/editing/use-first-button.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { CopyNow } from "../../parts/secrets/copy-now.tsx";
import { MakingDialog } from "../../parts/secrets/making-dialog.tsx";
import { EventBoxes } from "./event-boxes.tsx";
import { type EventType, formatNames, type WebhookKind } from "./webhook-kind.ts";

interface CreateWebhookProps {
  kind: WebhookKind;
  opened: boolean;
  close(): void;
  show(webhook: { id: string }): void;
}

export function CreateWebhook({ kind, opened, close, show }: CreateWebhookProps) {
  const creation = useChange((body: CreateWebhookRequest) => call<WebhookWithSecret>("POST", kind.path, { body }), {
    stale: [kind.path],
  });
  return (
    <MakingDialog
      {...{ opened, close }}
      making={creation}
      title="Add a webhook"
      titleOf={({ format }) => (format === "standard" ? "The webhook's secret" : "The webhook was added")}
      form={(leave) => <WebhookForm kind={kind} creation={creation} close={leave} />}
      isLong
    >
      {(made) => <Made webhook={made} done={() => show(made)} />}
    </MakingDialog>
  );
}

const fieldNames = ["url", "format", "routing_key", "description", "events"];
type Format = WebhookWithSecret["format"];

interface WebhookFormProps {
  kind: WebhookKind;
  creation: Change<CreateWebhookRequest, WebhookWithSecret>;
  close(): void;
}

function WebhookForm({ kind, creation, close }: WebhookFormProps) {
  const [url, setUrl] = useState("");
  const [format, setFormat] = useState<Format>("standard");
  const [routingKey, setRoutingKey] = useState("");
  const [description, setDescription] = useState("");
  const [events, setEvents] = useState<EventType[]>([]);
  const key = format === "pagerduty" ? { routing_key: routingKey.trim() } : {};
  const form = useFirstProblem(...fieldNames.map((field) => problemOf(creation.error, field)));
  return (
    <Form
      ref={form}
      sending={creation}
      fields={fieldNames}
      gap="lg"
      action="Add webhook"
      submit={() => creation.mutate({ url: url.trim(), format, ...key, description, events })}
      cancel={close}
      isHeld
    >
      <TextInput
        label="Address"
        description={kind.urlHint}
        placeholder="https://hooks.example.com/headrace"
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
        error={problemOf(creation.error, "url")}
        maxLength={2_048}
        autoComplete="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <Choice
        label="Format"
        description="The receiver that the events are written for"
        data={Object.entries(formatNames).map(([value, label]) => ({ value, label }))}
        value={format}
        onChange={(chosen) => setFormat((chosen ?? "standard") as Format)}
        error={problemOf(creation.error, "format")}
        allowDeselect={false}
      />
      {format === "pagerduty" && (
        <PasswordInput
          label="Integration key"
          description="From the Events API v2 integration of a PagerDuty service. Use the address https://events.pagerduty.com/v2/enqueue."
          value={routingKey}
          onChange={(event) => setRoutingKey(event.currentTarget.value)}
          error={problemOf(creation.error, "routing_key")}
          maxLength={200}
          autoComplete="off"
          required
        />
      )}
      <TextInput
        label="Description"
        description="Optional label"
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
        error={problemOf(creation.error, "description")}
        maxLength={200}
        autoComplete="off"
      />
      <EventBoxes kind={kind} value={events} change={setEvents} error={problemOf(creation.error, "events")} />
    </Form>
  );
}

function Made({ webhook: { secret, format }, done }: { webhook: WebhookWithSecret; done(): void }) {
  // The copy button has the focus, so that a stray Enter does not close the dialog.
  const firstButton = useFirstButton();
  if (format !== "standard") {
    return (
      <Stack ref={firstButton}>
        <Text size="sm">
          The webhook is ready for {formatNames[format]}. You can send a test from the webhook's page.
        </Text>
        <Group justify="end">
          <Button onClick={done}>Done</Button>
        </Group>
      </Stack>
    );
  }
  return (
    <Stack ref={firstButton}>
      <CopyNow what="the secret" where="on the server that receives" />
      <CopyBlock value={secret} label="Copy the secret" wrap />
      <Text size="sm">
        Any Standard Webhooks library can use this secret to verify that an event comes from this server. You can send a
        test from the webhook's page.
      </Text>
      <Group justify="end">
        <Button onClick={done}>Done</Button>
      </Group>
    </Stack>
  );
}
