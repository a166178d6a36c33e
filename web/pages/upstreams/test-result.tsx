// The result of a test: the server's models, or the error.
import { Alert, Code, Group, ScrollArea, Text } from "@mantine/core";
import { AlertIcon, CheckCircleIcon } from "@primer/octicons-react";
import type { UpstreamTest } from "../../api/types.ts";
import { counted, duration } from "../../parts/words/figures.ts";
import { apiNames } from "./upstream-state.tsx";

export function TestResult({ result: { ok, error, models, apis, duration_ms } }: { result: UpstreamTest }) {
  if (!ok) {
    return (
      <Alert icon={<AlertIcon />} color="red" title="The test failed" role="alert">
        {error}
      </Alert>
    );
  }
  const found = counted(models.length, "model");
  return (
    <Alert icon={<CheckCircleIcon />} color="green" title={`It works: ${found}`} role="status">
      <Text size="sm" mb="xs">
        The server answered in {duration(duration_ms)}. Formats: {apis.map((api) => apiNames[api]).join(", ")}.
        {models.length === 0 && " The server lists no models yet."}
      </Text>
      <ScrollArea.Autosize mah={180} viewportProps={{ tabIndex: 0, "aria-label": "Models found" }}>
        <Group gap={6}>
          {models.map((model) => (
            <Code key={model}>{model}</Code>
          ))}
        </Group>
      </ScrollArea.Autosize>
    </Alert>
  );
}
