// Says that a secret is shown only now.
import { Alert, Text } from "@mantine/core";
import { AlertIcon } from "@primer/octicons-react";

/** `what`: "the key". `where`: "on the server where the app runs". */
export function CopyNow({ what, where }: { what: string; where?: string }) {
  return (
    <Alert color="yellow" icon={<AlertIcon />}>
      <Text size="sm" fw={600}>
        Copy {what} now
      </Text>
      It is shown only this once: the server keeps no copy that anybody could read. Store it like a password
      {where === undefined ? "" : `, ${where}`}.
    </Alert>
  );
}
