// One sentence if all is well; otherwise the problems and their remedies.
import { Alert, List } from "@mantine/core";
import { AlertIcon, CheckCircleIcon } from "@primer/octicons-react";
import type { System } from "../../api/types.ts";
import { troublesOf } from "./troubles.ts";

export function Verdict({ system }: { system: System }) {
  const troubles = troublesOf(system);
  const isBad = troubles.some(({ isFailure }) => isFailure);
  return (
    <div role="status">
      {troubles.length === 0 ? (
        <Alert icon={<CheckCircleIcon />} color="green" title="All checks passed">
          The server accepts requests.
        </Alert>
      ) : (
        <Alert
          icon={<AlertIcon />}
          color={isBad ? "red" : "yellow"}
          title={isBad ? "A check failed" : "Needs attention"}
        >
          <List size="sm" spacing={4}>
            {troubles.map(({ text }) => (
              <List.Item key={text}>{text}</List.Item>
            ))}
          </List>
        </Alert>
      )}
    </div>
  );
}
