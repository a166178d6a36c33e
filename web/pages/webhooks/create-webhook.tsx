// The dialog that creates a webhook and then shows its secret once.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { type Change, useChange } from "../../api/queries.ts";
import type { CreateWebhookRequest, WebhookWithSecret } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useFirstButton } from "../../parts/editing/use-first-button.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { CopyNow } from "../../parts/secrets/copy-now.tsx";
import { MakingDialog } from "../../parts/secrets/making-dialog.tsx";
import { EventBoxes } from "./event-boxes.tsx";
import type { EventType, WebhookKind } from "./webhook-kind.ts";

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
      titleOf={() => "The webhook's secret"}
      form={(leave) => <WebhookForm kind={kind} creation={creation} close={leave} />}
      isLong
    >
      {(made) => <Made secret={made.secret} done={() => show(made)} />}
    </MakingDialog>
  );
}

const fieldNames = ["url", "description", "events"];

interface WebhookFormProps {
  kind: WebhookKind;
  creation: Change<CreateWebhookRequest, WebhookWithSecret>;
  close(): void;
}

function WebhookForm({ kind, creation, close }: WebhookFormProps) {
  const [url, setUrl] = useState("");
  const [description, setDescription] = useState("");
  const [events, setEvents] = useState<EventType[]>([]);
  const form = useFirstProblem(...fieldNames.map((field) => problemOf(creation.error, field)));
  return (
    <Form
      ref={form}
      sending={creation}
      fields={fieldNames}
      gap="lg"
      action="Add webhook"
      submit={() => creation.mutate({ url: url.trim(), description, events })}
      cancel={close}
      isHeld
    >
      <TextInput
        label="Address"
        description="An https address on the public internet"
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

function Made({ secret, done }: { secret: string; done(): void }) {
  // The copy button has the focus, so that a stray Enter does not close the dialog.
  const firstButton = useFirstButton();
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
