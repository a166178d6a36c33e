// Shows a new app or its new secret, which is visible only this once, and the next steps.
import { Button, Group, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import type { CreatedApp } from "../../api/types.ts";
import { useFirstButton } from "../../parts/editing/use-first-button.ts";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { CopyNow } from "../../parts/secrets/copy-now.tsx";
import { AppSnippets } from "./app-snippets.tsx";

interface NewAppProps {
  app: CreatedApp;
  /** Further hints, such as how long the old secret stays valid. */
  children?: ReactNode;
  done(): void;
}

export function NewApp({ app, children, done }: NewAppProps) {
  const { client_id: id, client_secret: secret } = app;
  // The copy button has the focus, so that a stray Enter does not close the dialog.
  const firstButton = useFirstButton();
  return (
    <Stack ref={firstButton}>
      {secret !== undefined && <CopyNow what="the secret" where="on the server where the app runs" />}
      <div>
        <Text size="sm" fw={600} mb={4}>
          Client id
        </Text>
        <CopyBlock value={id} label="Copy the client id" wrap />
      </div>
      {secret === undefined ? (
        <Text size="sm">This app is public and has no secret. It uses PKCE instead.</Text>
      ) : (
        <div>
          <Text size="sm" fw={600} mb={4}>
            Client secret
          </Text>
          <CopyBlock value={secret} label="Copy the client secret" wrap />
        </div>
      )}
      {children}
      <Title order={2} size="h4">
        Sign a person in
      </Title>
      <AppSnippets app={app} secret={secret} />
      <Group justify="end">
        <Button onClick={done}>Done</Button>
      </Group>
    </Stack>
  );
}
