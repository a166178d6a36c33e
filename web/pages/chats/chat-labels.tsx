// The labels of a chat in a list; each links to the chats with the same label.
import { Anchor, Group } from "@mantine/core";
import { Link } from "wouter";

/** Maximum number of labels that fit in a row. */
const maxShown = 3;

export function ChatLabels({ metadata }: { metadata: Readonly<Record<string, string>> }) {
  return (
    <Group gap={10} wrap="nowrap" style={{ overflow: "hidden" }}>
      {Object.entries(metadata)
        .slice(0, maxShown)
        .map(([name, value]) => (
          <Anchor
            key={name}
            component={Link}
            href={`/chats?${new URLSearchParams({ labels: `${name}=${value}` })}`}
            {...{ size: "xs", lh: "24px", miw: 24, truncate: true }}
            title={`Only chats with ${name}=${value}`}
          >
            {name}={value}
          </Anchor>
        ))}
    </Group>
  );
}
