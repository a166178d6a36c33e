// The labels of a chat in a list, each of which leads to the chats that have it as well.
import { Anchor, Group } from "@mantine/core";
import { Link } from "wouter";

export function ChatLabels({ metadata }: { metadata: Readonly<Record<string, string>> }) {
  const labels = Object.entries(metadata);
  if (labels.length === 0) return null;
  return (
    <Group gap="2px 10px" wrap="nowrap" style={{ overflow: "hidden" }}>
      {labels.slice(0, 4).map(([name, value]) => (
        <Anchor
          key={name}
          component={Link}
          href={`/chats?${new URLSearchParams({ labels: `${name}=${value}` })}`}
          size="xs"
          truncate
          title={`Only chats with ${name}=${value}`}
        >
          {name}={value}
        </Anchor>
      ))}
    </Group>
  );
}
