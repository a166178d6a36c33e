// The dialog that gives an app a new secret, while the one before goes on for a while.
import { Button, Group, Modal, NativeSelect, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { App, RotatedApp } from "../../api/types.ts";
import { useFirstButton } from "../../parts/editing/use-first-button.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { CopyNow } from "../../parts/secrets/copy-now.tsx";
import { overlaps } from "../../parts/secrets/overlaps.ts";
import { at } from "../../parts/words/figures.ts";

interface RotateSecretProps {
  app: App;
  opened: boolean;
  close(): void;
}

export function RotateSecret({ app, opened, close }: RotateSecretProps) {
  const path = `/v1/apps/${app.id}`;
  const [overlap, setOverlap] = useState("86400");
  const rotation = useChange(
    () => call<RotatedApp>("POST", `${path}/rotate-secret`, { body: { overlap_seconds: Number(overlap) } }),
    { stale: [path] },
  );
  const rotated = rotation.data;
  const leave = () => {
    // Whoever left while it is made would never see the new secret.
    if (rotation.isPending) return;
    close();
  };
  return (
    <Modal
      opened={opened}
      onClose={leave}
      onExitTransitionEnd={rotation.reset}
      title={rotated ? "The new secret" : "Rotate the secret"}
      closeOnClickOutside={rotated === undefined}
      closeOnEscape={rotated === undefined}
      withCloseButton={rotated === undefined}
    >
      {rotated ? (
        <NewSecret app={rotated} done={leave} />
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            rotation.mutate(undefined);
          }}
        >
          <Stack>
            <Text size="sm">
              The app gets a new secret. Whoever is signed in to it stays so.
              {app.secrets.length > 1 && " Two secrets work at most: the older of those that work now ends at once."}
            </Text>
            <NativeSelect
              label="The old secret goes on working"
              description="Long enough to put the new one in its place"
              value={overlap}
              onChange={(event) => setOverlap(event.currentTarget.value)}
              data={overlaps}
              data-autofocus
            />
            {rotation.error && <Failure error={rotation.error} />}
            <Group justify="end">
              <Button variant="default" onClick={leave} disabled={rotation.isPending}>
                Cancel
              </Button>
              <Button type="submit" loading={rotation.isPending}>
                Rotate the secret
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  );
}

function NewSecret({ app, done }: { app: RotatedApp; done(): void }) {
  const place = useFirstButton();
  return (
    <Stack ref={place}>
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
  if (!old || old.expires_at === null) return "The old secret works no more.";
  return `The old secret, …${old.last4}, works until ${at(old.expires_at)}: put the new one in its place by then.`;
}
