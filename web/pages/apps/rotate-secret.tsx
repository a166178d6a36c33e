// The dialog that gives an app a new secret while the old one stays valid for some time.
import { Button, Group, Stack, Text } from "@mantine/core";
import type { App, RotatedApp } from "../../api/types.ts";
import { useFirstButton } from "../../parts/editing/use-first-button.ts";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { CopyNow } from "../../parts/secrets/copy-now.tsx";
import { Rotation } from "../../parts/secrets/rotation.tsx";
import { at } from "../../parts/words/figures.ts";

export function RotateSecret({ app, opened, close }: { app: App; opened: boolean; close(): void }) {
  const olderEnds =
    app.secrets.length > 1 ? " An app can have two working secrets. The oldest one stops working immediately." : "";
  return (
    <Rotation<RotatedApp>
      {...{ opened, close }}
      what="secret"
      path={`/v1/apps/${app.id}`}
      action="rotate-secret"
      title="Rotate the secret"
      titleOf={() => "The new secret"}
      about={`The app gets a new secret. People stay signed in to the app.${olderEnds}`}
      hint="Choose enough time to deploy the new secret"
    >
      {(rotated, leave) => <NewSecret app={rotated} done={leave} />}
    </Rotation>
  );
}

function NewSecret({ app, done }: { app: RotatedApp; done(): void }) {
  const firstButton = useFirstButton();
  return (
    <Stack ref={firstButton}>
      <CopyNow what="the secret" where="on the server where the app runs" />
      <CopyBlock value={app.client_secret} label="Copy the client secret" wrap />
      <Text size="sm">{oldEnds(app)}</Text>
      <Group justify="end">
        <Button onClick={done}>Done</Button>
      </Group>
    </Stack>
  );
}

function oldEnds({ secrets }: RotatedApp): string {
  const old = secrets.find(({ expires_at: expires }) => expires !== null);
  if (!old || old.expires_at === null) return "The old secret no longer works.";
  return `The old secret, …${old.last4}, works until ${at(old.expires_at)}. Deploy the new secret before then.`;
}
