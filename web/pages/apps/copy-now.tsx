// Says that a secret is shown only now.
import { Alert, Text } from "@mantine/core";
import { AlertIcon } from "@primer/octicons-react";

export function CopyNow() {
  return (
    <Alert color="yellow" icon={<AlertIcon />}>
      <Text size="sm" fw={600}>
        Copy the secret now
      </Text>
      It is shown only this once: the server keeps no copy that anybody could read. Store it like a password, on the
      server where the app runs.
    </Alert>
  );
}
