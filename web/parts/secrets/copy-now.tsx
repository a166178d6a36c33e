// A warning that a secret is shown only once.
import { Alert, Text } from "@mantine/core";
import { AlertIcon } from "@primer/octicons-react";

/** Shows the warning. `what` is text such as "the key"; `where` such as "on the server where the app runs". */
export function CopyNow({ what, where }: { what: string; where?: string }) {
  return (
    <Alert color="yellow" icon={<AlertIcon />}>
      <Text size="sm" fw={600}>
        Copy {what} now
      </Text>
      You see it only once: the server stores only a hash. Store it like a password
      {where === undefined ? "" : `, ${where}`}.
    </Alert>
  );
}
