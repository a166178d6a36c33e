// Chooses the events of a webhook. If no event is chosen, the webhook receives all events.
import { Checkbox, Stack } from "@mantine/core";
import { type EventType, eventMeanings, type WebhookKind } from "./webhook-kind.ts";

interface EventBoxesProps {
  kind: WebhookKind;
  value: readonly EventType[];
  change(value: EventType[]): void;
  error: string | undefined;
}

export function EventBoxes({ kind, value, change, error }: EventBoxesProps) {
  return (
    <Checkbox.Group
      label="Events"
      description="Leave empty to receive all events, including events of later versions."
      value={[...value]}
      onChange={(chosen) => change(kind.types.filter((type) => chosen.includes(type)))}
      error={error}
    >
      <Stack gap="xs" mt="xs">
        {kind.types.map((type) => (
          <Checkbox key={type} value={type} label={eventMeanings[type]} description={type} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}
