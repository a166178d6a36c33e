// An app that was just registered, or its new secret, the only time that it is shown, and what comes next.
import { Alert, Button, Group, Stack, Text, Title } from "@mantine/core";
import { AlertIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import type { CreatedApp } from "../../api/types.ts";
import { CopyBlock } from "../../parts/copy.tsx";
import { AppSnippets } from "./app-snippets.tsx";

interface NewAppProps {
  app: CreatedApp;
  /** What else is to be known, such as what becomes of an old secret. */
  children?: ReactNode;
  done(): void;
}

export function NewApp({ app, children, done }: NewAppProps) {
  const { client_id: id, client_secret: secret } = app;
  return (
    <Stack>
      {secret !== undefined && (
        <Alert color="yellow" icon={<AlertIcon />} title="Copy the secret now">
          It is shown only this once: the server keeps no copy that anybody could read. Store it like a password, on the
          server where the app runs.
        </Alert>
      )}
      <div>
        <Text size="sm" fw={600} mb={4}>
          Client id
        </Text>
        <CopyBlock value={id} label="Copy the client id" wrap />
      </div>
      {secret === undefined ? (
        <Text size="sm">It is public, and has no secret: PKCE takes its place.</Text>
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
        Sign somebody in
      </Title>
      <AppSnippets app={app} secret={secret} />
      <Group justify="end">
        <Button onClick={done} data-autofocus>
          Done
        </Button>
      </Group>
    </Stack>
  );
}
